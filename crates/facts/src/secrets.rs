//! Recognises values that must never become facts: secrets and users' SQL text.

/// Why a value that can be a secret is not in the facts.
pub const NOT_KEPT: &str = "not kept: it can hold a secret or a user's statement";

/// Names of variables and options that hold secrets or users' SQL and have no telling suffix.
const NAMES: [&str; 14] = [
    "init_connect",
    "init_replica",
    "init_slave",
    "wsrep_provider_options",
    "wsrep_sst_auth",
    "s3_access_key",
    "s3_secret_key",
    "wsrep_notify_cmd",
    "authentication_ldap_simple_bind_root_pwd",
    "authentication_ldap_sasl_bind_root_pwd",
    "keyring_aws_cmk_id",
    "keyring_hashicorp_role_id",
    "file_key_management_filekey",
    "debug",
];

/// Options whose names contain a word for secrets; servers that accept abbreviated names accept prefixes of these.
const TOLD_BY_A_WORD: [&str; 9] = [
    "handlersocket_plain_secret",
    "handlersocket_plain_secret_wr",
    "hashicorp_key_management_token",
    "keyring_hashicorp_secret_id",
    "keyring_migration_password",
    "master_password",
    "password",
    "report_password",
    "ssl_passphrase",
];

/// Prefixes of secret options that are options themselves.
const NO_BEGINNINGS: [&str; 2] = ["ssl", "wsrep_provider"];

/// Words in a name that indicate a secret value.
const WORDS: [&str; 7] = ["password", "passwd", "pwd", "secret", "token", "passphrase", "credentials"];

/// Prefixes of names that contain such a word but hold a policy, a switch or a number.
const POLICIES: [&str; 16] = [
    "caching_sha2_password_",
    "cracklib_password_check",
    "default_password_",
    "disconnect_on_expired_password",
    "generated_random_password_",
    "innodb_ft_max_token_size",
    "innodb_ft_min_token_size",
    "max_password_errors",
    "mysql_native_password",
    "ngram_token_size",
    "password_",
    "performance_schema_",
    "sha256_password_",
    "simple_password_check",
    "strict_password_",
    "validate_password",
];

/// Whether a server variable or option can hold a secret. The name may contain dashes and upper case and begin with
/// `loose-`.
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let name = name.trim_start_matches("loose_");
    if POLICIES.iter().any(|policy| name.starts_with(policy)) {
        return false;
    }
    NAMES.contains(&name)
        || name.ends_with("_access_key")
        || name.split('_').any(|word| WORDS.contains(&word))
        || is_cut_short(name)
}

/// Whether a name abbreviates an option that holds a secret, as in `report-pass`: many servers accept abbreviations.
/// One or two letters abbreviate many options, and no server accepts those.
fn is_cut_short(name: &str) -> bool {
    name.len() > 2
        && !NO_BEGINNINGS.contains(&name)
        && NAMES.iter().chain(&TOLD_BY_A_WORD).any(|secret| secret.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::{NAMES, TOLD_BY_A_WORD, is_cut_short, is_secret_variable};

    #[test]
    fn secrets_are_known_by_name_and_policies_are_not_taken_for_them() {
        for name in [
            "report_password",
            "wsrep-sst-auth",
            "Master_Password",
            "password",
            "init_connect",
            "hashicorp_key_management_token",
            "loose-wsrep_sst_auth",
            "loose-s3-secret-key",
            "loose_init_connect",
            "LOOSE-file-key-management-filekey",
            "handlersocket_plain_secret_wr",
            "report-pass",
            "Report_Passw",
            "loose-wsrep-sst-au",
            "s3-secret",
            "init-con",
        ] {
            assert!(is_secret_variable(name), "{name}");
        }
        for name in [
            "password_history",
            "default_password_lifetime",
            "disconnect_on_expired_password",
            "old_passwords",
            "max_password_errors",
            "innodb_ft_min_token_size",
            "caching_sha2_password_digest_rounds",
            "sync_binlog",
            "ssl_key",
            "wsrep_provider",
            "",
        ] {
            assert!(!is_secret_variable(name), "{name}");
        }
    }

    #[test]
    fn no_option_of_a_server_is_taken_for_the_beginning_of_a_secret() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../knobs/servers");
        let mut seen = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let names = text.lines().filter_map(|line| line.split_once(" = {")).map(|(name, _)| name);
            for name in names.filter(|name| !NAMES.contains(name) && !TOLD_BY_A_WORD.contains(name)) {
                seen += 1;
                assert!(!is_cut_short(name), "{name}");
            }
        }
        assert!(seen > 1000, "{seen}");
    }
}
