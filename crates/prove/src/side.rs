//! Sides of a comparison, as users type them, as levers.

use std::path::Path;

use mydyno_model::experiment::LeverLevel;
use mydyno_sandbox::version::EngineRequest;

use crate::error::ProveError;

/// Parses `LEVER=VALUE`, where the lever is one of `mydyno host levers`; `None` without a lever and `=`.
pub fn level(text: &str) -> Option<LeverLevel> {
    let (lever, value) = text.split_once('=').filter(|(lever, _)| !lever.is_empty())?;
    Some(LeverLevel { lever: lever.to_owned(), value: value.to_owned() })
}

/// Parses one side: `LEVER=VALUE`, an option file, the base directory of a server, or an engine.
///
/// # Errors
/// It is none of these; the error lists the attempts.
pub fn parse(side: &str) -> Result<LeverLevel, ProveError> {
    let level = |lever: &str, value: &str| LeverLevel { lever: lever.to_owned(), value: value.to_owned() };
    let refuse = |why: &str| ProveError::Side { side: side.to_owned(), why: why.to_owned() };
    let path = Path::new(side);
    match side.split_once('=') {
        Some((lever, value)) if !lever.contains('/') => match (lever.is_empty(), lever.contains('.')) {
            (true, _) => Err(refuse("it has no lever before the =")),
            // The form of variables in `server up --set`.
            (false, false) => Ok(level(&format!("option.{lever}"), value)),
            (false, true) => Ok(level(lever, value)),
        },
        _ if path.is_dir() => Ok(level("server.basedir", side)),
        _ if path.is_file() => Ok(level("server.option_file", side)),
        _ if EngineRequest::parse(side).is_ok() => Ok(level("server.engine", side)),
        _ => Err(refuse("there is no such file or folder, and it names no engine")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(side: &str) -> String {
        parse(side).map_or_else(|e| e.to_string(), |l| format!("{}={}", l.lever, l.value))
    }

    #[test]
    fn each_form_of_a_side_is_a_lever() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.cnf");
        std::fs::write(&file, "[mysqld]\n").unwrap();
        let (folder, file) = (folder.path().display().to_string(), file.display().to_string());
        assert_eq!(read("option.sync_binlog=0"), "option.sync_binlog=0");
        assert_eq!(read("sort_buffer_size=3M"), "option.sort_buffer_size=3M");
        assert_eq!(read("env.MALLOC_CONF=a:b=c"), "env.MALLOC_CONF=a:b=c");
        assert_eq!(read("mysql-8.0"), "server.engine=mysql-8.0");
        assert_eq!(read(&folder), format!("server.basedir={folder}"));
        assert_eq!(read(&file), format!("server.option_file={file}"));
    }

    #[test]
    fn what_is_no_side_names_the_forms() {
        for side in ["", "=3", "/no/such/file", "postgres-16"] {
            assert!(read(side).contains("a side is LEVER=VALUE"), "{side}: {}", read(side));
        }
    }
}
