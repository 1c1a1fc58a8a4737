//! The command-line client of a private server.

use std::path::{Path, PathBuf};
use std::process::Command;

use mydyno_host::StateDir;

use crate::error::SandboxError;
use crate::folder::{ServerFolder, check_name};

const NAMES: [&str; 2] = ["mariadb", "mysql"];

/// A client program on the PATH, with the options to log in to a private server; `None` when no client is installed.
/// The password is in an option file of the server's folder, not in the arguments or the environment.
///
/// # Errors
/// There is no such server.
pub fn command(state: &StateDir, name: &str) -> Result<Option<Command>, SandboxError> {
    check_name(name)?;
    let folder = ServerFolder::of(state, name);
    let options = folder.client_options();
    if !options.is_file() {
        return Err(SandboxError::NoSuchServer { name: name.to_owned(), known: vec![] });
    }
    Ok(program().map(|program| {
        let mut command = Command::new(program);
        // `--defaults-extra-file` would not do: the client reads ~/.my.cnf after it, and that password would take
        // precedence.
        command.arg(format!("--defaults-file={}", options.display()));
        // MySQL's client reads a login file all the same.
        command.env("MYSQL_TEST_LOGIN_FILE", folder.path().join("no-login-file"));
        // The history is stored with the server: it may contain passwords of new accounts and names of tables.
        for variable in ["MYSQL_HISTFILE", "MARIADB_HISTFILE"] {
            command.env(variable, folder.path().join("history"));
        }
        for variable in ["MYSQL_PWD", "MYSQL_HOST", "MYSQL_TCP_PORT", "MYSQL_UNIX_PORT"] {
            command.env_remove(variable);
        }
        command
    }))
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).filter(|f| f.is_absolute()).collect();
    let is_program = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    NAMES.iter().flat_map(|n| folders.iter().map(move |f| f.join(n))).find(|p| is_program(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_kept_in_the_servers_folder_only() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(&temp.path().join("state")).unwrap();
        let folder = ServerFolder::of(&state, "a");
        std::fs::create_dir_all(folder.path()).unwrap();
        std::fs::write(folder.client_options(), "").unwrap();
        let Some(client) = command(&state, "a").unwrap() else { return };
        let history = client.get_envs().find(|(name, _)| *name == "MYSQL_HISTFILE").unwrap().1.unwrap();
        assert!(Path::new(history).starts_with(folder.path()));
    }
}
