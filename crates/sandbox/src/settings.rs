//! `--set var=value`: the form is checked here; the server itself decides whether the variable exists.

use crate::error::SandboxError;

/// A server variable for a private server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// With underscores, as in `innodb_buffer_pool_size`.
    pub name: String,
    /// As the user wrote it.
    pub value: String,
}

/// Options that must not be changed on a private server: its paths, its access and its way of running.
const OWN: &[&str] = &[
    "admin_address",
    "admin_port",
    "aria_log_dir_path",
    "basedir",
    "bind_address",
    "bootstrap",
    "character_sets_dir",
    "chroot",
    "daemonize",
    "datadir",
    "defaults_extra_file",
    "defaults_file",
    "defaults_group_suffix",
    "extra_port",
    "help",
    "init_file",
    "initialize",
    "initialize_insecure",
    "innodb_data_home_dir",
    "innodb_directories",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "install",
    "lc_messages_dir",
    "log_error",
    "mysqlx",
    "no_defaults",
    "pid_file",
    "plugin_dir",
    "port",
    "print_defaults",
    "remove",
    "skip_grant_tables",
    "skip_networking",
    "socket",
    "standalone",
    "tmpdir",
    "user",
    "verbose",
    "version",
    "wsrep_cluster_address",
    "wsrep_on",
    "wsrep_provider",
];

/// Variables that shape the data directory, so they are needed when it is initialised.
const AT_INIT: &[&str] = &[
    "innodb_autoextend_increment",
    "innodb_checksum_algorithm",
    "innodb_data_file_path",
    "innodb_default_row_format",
    "innodb_doublewrite",
    "innodb_file_format",
    "innodb_file_per_table",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
];

/// Parses `var=value`.
///
/// # Errors
/// It does not have this form, or mydyno sets the variable itself on a private server.
pub fn parse_set(input: &str) -> Result<Setting, SandboxError> {
    let error = |why: &str| SandboxError::Setting { input: input.to_owned(), why: why.to_owned() };
    let (name, value) = input.split_once('=').ok_or_else(|| error("there is no `=` in it"))?;
    let name = name.trim().replace('-', "_").to_ascii_lowercase();
    let mut letters = name.chars();
    let named = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
        && name.len() <= 128;
    if !named {
        return Err(error("a variable's name has letters, digits and underscores"));
    }
    if value.contains(['\n', '\r', '\0']) || value.len() > 4096 {
        return Err(error("a value is one line of at most 4096 bytes"));
    }
    // Servers accept any unambiguous prefix of an option's name.
    let bare = bare_name(&name);
    let own = |name: &str| OWN.iter().any(|own| own.starts_with(name));
    if own(&name) || own(&bare) || OWN.iter().any(|o| *o == format!("skip_{bare}")) {
        return Err(error("mydyno sets this itself for a private server"));
    }
    if leaves_the_folder(value) {
        return Err(error(
            "a private server keeps to its own folder, so that nothing is left when it goes: give a file name without a path",
        ));
    }
    Ok(Setting { name, value: value.to_owned() })
}

/// A variable's name in lower case with underscores, without prefixes such as `skip-` and `loose-`.
pub(crate) fn bare_name(name: &str) -> String {
    mydyno_settings::bare_name(name).0
}

/// Whether a value is, or contains, a path outside the data directory. Statements and file names are none.
fn leaves_the_folder(value: &str) -> bool {
    value.split([':', ';', ',', '=', ' ']).any(|part| {
        let part = part.trim_matches(['"', '\'']);
        part.starts_with(['/', '~']) || part.split('/').any(|step| step == "..")
    })
}

impl Setting {
    /// The command-line option of the server.
    pub(crate) fn option(&self) -> String {
        // `--log-bin=OFF` would write a binary log named OFF.
        let off = matches!(self.value.to_ascii_lowercase().as_str(), "0" | "off");
        if self.name == "log_bin" && off {
            return "--skip-log-bin".to_owned();
        }
        if self.name == "log_bin" && matches!(self.value.to_ascii_lowercase().as_str(), "1" | "on") {
            return "--log-bin".to_owned();
        }
        format!("--{}={}", self.name, self.value)
    }

    /// Whether the data directory depends on it.
    pub(crate) fn shapes_datadir(&self) -> bool {
        AT_INIT.contains(&self.name.strip_prefix("loose_").unwrap_or(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_leads_out_of_the_folder_is_refused() {
        for input in [
            "general_log_file=/tmp/o.log",
            "log_bin=../bin",
            "innodb_data_file_path=ibdata1:12M;/dev/sdb:1G",
            "slow_query_log_file=~/slow.log",
            "relay_log=a/../../b",
        ] {
            let error = parse_set(input).unwrap_err().to_string();
            assert!(error.contains("keeps to its own folder"), "{input}: {error}");
        }
        for input in [
            "general_log_file=general.log",
            "log_bin=bin",
            "init_connect=SELECT 4/2",
            "innodb_data_file_path=ibdata1:12M:autoextend",
        ] {
            parse_set(input).unwrap();
        }
    }

    #[test]
    fn settings_become_options() {
        for (input, option) in [
            ("innodb_buffer_pool_size=256M", "--innodb_buffer_pool_size=256M"),
            ("innodb-flush-log-at-trx-commit=2", "--innodb_flush_log_at_trx_commit=2"),
            ("sql_mode=", "--sql_mode="),
            ("log_bin=OFF", "--skip-log-bin"),
            ("log_bin=1", "--log-bin"),
            ("init_connect=SET @a=1", "--init_connect=SET @a=1"),
        ] {
            assert_eq!(parse_set(input).unwrap().option(), option);
        }
    }

    #[test]
    fn what_is_no_setting_is_refused_with_the_reason() {
        for (input, why) in [
            ("innodb_buffer_pool_size", "no `=`"),
            ("=1", "letters"),
            ("--datadir=/x", "letters"),
            ("a b=1", "letters"),
            ("sql_mode=a\nb", "one line"),
        ] {
            let error = parse_set(input).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(&format!("{input:?}")), "{error}");
        }
    }

    #[test]
    fn what_makes_a_server_private_cannot_be_set() {
        for input in [
            "datadir=/x",
            "loose-datadir=/x",
            "datadi=/x",
            "port=3306",
            "init-file=/x",
            "skip_grant_tables=1",
            "log_error=/x",
            "daemonize=1",
        ] {
            let error = parse_set(input).unwrap_err().to_string();
            assert!(error.contains("sets this itself"), "{input}: {error}");
        }
        for input in ["port_open_timeout=1", "log_error_verbosity=3", "init_connect=x", "version_comment=x"] {
            assert!(parse_set(input).is_ok(), "{input}");
        }
    }
}
