//! The load generator of an experiment: the CPUs that it runs on, its connections, their character set.

use mydyno_host::Machine;
use mydyno_host::task::Attribute;
use mydyno_model::lever::{LeverInfo, LeverScope};

use crate::draft::Draft;
use crate::error::LeverError;
use crate::info::entry;
use crate::kind::Family;
use crate::lever_set::When;

const CPUS: &str = "client.cpus";
const CONNECTIONS: &str = "client.connections";
const CONNECTIONS_FORM: &str = "a number from 1 to 100000";
const CHARSET: &str = "client.character_set";
const CHARSET_FORM: &str = "a character set of the server, as in utf8mb4 or latin1";

pub(crate) struct Client;

impl Family for Client {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        let client = &mut draft.lever_set.client;
        match id {
            CPUS => {
                let cpus = mydyno_host::task::parse_cpus(value).filter(|cpus| !cpus.is_empty());
                client.cpus =
                    Some(cpus.ok_or_else(|| LeverError::value(id, value, Attribute::Affinity.form()))?);
            }
            CONNECTIONS => {
                let connections =
                    value.parse().ok().filter(|connections| (1..=100_000).contains(connections));
                client.connections =
                    Some(connections.ok_or_else(|| LeverError::value(id, value, CONNECTIONS_FORM))?);
            }
            CHARSET => {
                let plain = !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if !plain {
                    return Err(LeverError::value(id, value, CHARSET_FORM));
                }
                client.character_set = Some(value.to_owned());
            }
            _ => return Ok(None),
        }
        Ok(Some(When::Client))
    }

    fn list(&self, _machine: &Machine) -> Vec<LeverInfo> {
        let cpus = "CPUs that the load generator of `compare` and `prove` may run on";
        let connections = "connections of the load in `compare` and `prove`";
        let charset = "character set of the load's sessions in `compare` and `prove` (SET NAMES)";
        vec![
            LeverInfo {
                now: mydyno_host::task::own_cpus(),
                ..entry(CPUS, cpus, Attribute::Affinity.form(), LeverScope::Load)
            },
            entry(CONNECTIONS, connections, CONNECTIONS_FORM, LeverScope::Load),
            entry(CHARSET, charset, CHARSET_FORM, LeverScope::Load),
        ]
    }

    fn names(&self, _machine: Option<&Machine>) -> Vec<String> {
        [CPUS, CONNECTIONS, CHARSET].map(str::to_owned).into()
    }
}
