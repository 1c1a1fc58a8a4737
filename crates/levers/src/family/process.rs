//! The server's process: allocator, scheduling, limits, environment, user, delayed syncs.

use mydyno_host::allocator::{ALLOCATORS, Allocator};
use mydyno_host::limit::{LIMITS, Limit};
use mydyno_host::numa::{self, MemoryPolicy};
use mydyno_host::task::Attribute;
use mydyno_host::user::{self, User};
use mydyno_host::{Machine, effective_uid, sync_delay};
use mydyno_model::lever::{LeverInfo, LeverValue};
use mydyno_sandbox::ENVIRONMENT;

use crate::draft::Draft;
use crate::error::LeverError;
use crate::info::{at_start, reason};
use crate::kind::Family;
use crate::lever_set::When;

const USER: &str = "a user of this machine, by name or number";
const SYNC_DELAY: &str = "by how much longer the server waits for each fsync, fdatasync and msync (LD_PRELOAD); not for writes with O_DSYNC, \
                          nor for syncs through io_uring";
const ATTRIBUTES: [(Attribute, &str); 4] = [
    (Attribute::Affinity, "CPUs that the server may run on"),
    (Attribute::Nice, "the server's nice value"),
    (Attribute::Class, "the server's scheduling class"),
    (Attribute::OomScoreAdj, "what is added to the server's score for the out-of-memory killer"),
];

pub(crate) struct Process;

impl Family for Process {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        let arrangement = &mut draft.lever_set.server.arrangement;
        let (room, name) = id.split_once('.').unwrap_or((id, ""));
        match (room, name) {
            ("limit", name) => {
                let Some(limit) = Limit::named(name) else { return Ok(None) };
                arrangement.process_limits.push((limit, limit.parse(value)?));
            }
            ("server", "sync_delay") => arrangement.sync_delay = Some(sync_delay::parse(value)?),
            ("server", "numa") => arrangement.memory_policy = Some(MemoryPolicy::parse(value)?),
            ("server", "user") if value.is_empty() || value.contains(['\0', '\n']) => {
                return Err(LeverError::value(id, value, USER));
            }
            ("server", "user") => arrangement.user = Some(value.to_owned()),
            ("server", "allocator") => {
                let known = || ALLOCATORS.map(Allocator::name).join(" ");
                let named = Allocator::named(value);
                arrangement.allocator = Some(named.ok_or_else(|| LeverError::value(id, value, &known()))?);
            }
            ("server", name) => {
                let Some((attribute, _)) = ATTRIBUTES.iter().find(|(a, _)| a.name() == name) else {
                    return Ok(None);
                };
                arrangement.scheduling.push((*attribute, attribute.normal(value)?));
            }
            ("env", name) if ENVIRONMENT.contains(&name) => {
                arrangement.environment.push((name.to_owned(), value.to_owned()));
            }
            _ => return Ok(None),
        }
        Ok(Some(When::ServerStart))
    }

    fn list(&self, machine: &Machine) -> Vec<LeverInfo> {
        let allocator = LeverInfo {
            values: ALLOCATORS
                .map(|allocator| LeverValue {
                    value: allocator.name().to_owned(),
                    lacks: reason(allocator.library()),
                    ledger: None,
                })
                .into(),
            ..at_start("server.allocator", "the server's memory allocator (LD_PRELOAD)", "an allocator")
        };
        let attributes = ATTRIBUTES
            .map(|(attribute, what)| at_start(&of_server(attribute.name()), what, attribute.form()));
        let limits = LIMITS.map(|limit| LeverInfo {
            now: limit.now(),
            ..at_start(&format!("limit.{}", limit.name()), limit.what(), limit.form())
        });
        let delay = LeverInfo {
            lacks: reason(sync_delay::check()),
            ..at_start(sync_delay::NAME, SYNC_DELAY, sync_delay::FORM)
        };
        let memory = LeverInfo {
            lacks: reason(numa::check(machine)),
            ..at_start(numa::NAME, "on which NUMA nodes the server's memory lies", numa::FORM)
        };
        let user = LeverInfo {
            now: User::find(&effective_uid().to_string()).ok().map(|user| user.name().to_owned()),
            lacks: reason(user::check(machine)),
            ..at_start("server.user", "the user that the server runs as", USER)
        };
        let environment = ENVIRONMENT
            .iter()
            .map(|name| at_start(&of_environment(name), "the server's environment", "one line"));
        let first = std::iter::once(allocator).chain(attributes).chain(limits).chain([delay, memory, user]);
        first.chain(environment).collect()
    }

    fn names(&self, _machine: Option<&Machine>) -> Vec<String> {
        let attributes = ATTRIBUTES.map(|(attribute, _)| of_server(attribute.name()));
        let limits = LIMITS.map(|limit| format!("limit.{}", limit.name()));
        let others = ["server.allocator", sync_delay::NAME, numa::NAME, "server.user"].map(str::to_owned);
        let environment = ENVIRONMENT.iter().map(|name| of_environment(name));
        others.into_iter().chain(attributes).chain(limits).chain(environment).collect()
    }
}

fn of_server(name: &str) -> String {
    format!("server.{name}")
}

fn of_environment(name: &str) -> String {
    format!("env.{name}")
}
