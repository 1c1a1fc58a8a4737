//! The server program and the option file that it starts with.

use std::path::{self, PathBuf};

use mydyno_host::Machine;
use mydyno_model::lever::LeverInfo;
use mydyno_sandbox::find::find;
use mydyno_sandbox::version::EngineRequest;

use crate::draft::Draft;
use crate::error::LeverError;
use crate::info::{at_start, reason};
use crate::kind::Family;
use crate::lever_set::When;

/// Id, meaning, form of the values.
const LEVERS: [(&str, &str, &str); 3] = [
    (
        "server.engine",
        "which server, of those found on this machine",
        "a family, with a series if it matters, as in mariadb-10.11",
    ),
    (
        "server.basedir",
        "the folder in which the server is unpacked",
        "the folder with its bin or sbin, as in /opt/mysql-8.0",
    ),
    (
        "server.option_file",
        "an option file that it starts with, as the server itself reads it; what makes it private is left out and named",
        "a path, as in /etc/mysql/my.cnf",
    ),
];

pub(crate) struct Program;

impl Family for Program {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        let server = &mut draft.lever_set.server;
        match id {
            "server.engine" => {
                EngineRequest::parse(value)?;
                server.engine = Some(value.to_owned());
            }
            "server.basedir" => server.basedir = Some(absolute(id, value)?),
            "server.option_file" => server.option_file = Some(absolute(id, value)?),
            _ => return Ok(None),
        }
        Ok(Some(When::ServerStart))
    }

    fn list(&self, _machine: &Machine) -> Vec<LeverInfo> {
        let found = find(None, None);
        let now = found.as_ref().ok().map(|i| format!("{} from {}", i.engine, i.program.display()));
        let lacks = reason(found);
        LEVERS
            .map(|(id, what, takes)| {
                let entry = at_start(id, what, takes);
                match id {
                    "server.engine" => LeverInfo { now: now.clone(), lacks: lacks.clone(), ..entry },
                    _ => entry,
                }
            })
            .into()
    }

    fn names(&self, _machine: Option<&Machine>) -> Vec<String> {
        LEVERS.map(|(id, ..)| id.to_owned()).into()
    }
}

/// The server runs in another folder than this command, so relative paths become absolute.
fn absolute(id: &str, value: &str) -> Result<PathBuf, LeverError> {
    path::absolute(value).map_err(|_| LeverError::value(id, value, "a path"))
}
