//! Limits of the server's control group.

use mydyno_host::Machine;
use mydyno_host::cgroup::{IoLimit, RESOURCES, Resource};
use mydyno_host::task::Attribute;
use mydyno_model::lever::LeverInfo;
use mydyno_model::units::parse_size;

use crate::draft::Draft;
use crate::error::LeverError;
use crate::info::{at_start, reason};
use crate::kind::Family;
use crate::lever_set::When;

const SIZE: &str = "a size like 512M";
const CPU: &str = "a number of CPUs like 1.5, at least 0.01";
const IO: &str = "limits a second like read_iops=200,write_iops=100,read_bytes=20M,write_bytes=10M";

pub(crate) struct Group;

impl Family for Group {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        let size = || parse_size(value).map_err(|_| LeverError::value(id, value, SIZE));
        let limits = &mut draft.lever_set.server.arrangement.limits;
        match id {
            "cgroup.memory" => limits.memory_bytes = Some(size()?),
            "cgroup.swap" => limits.swap_bytes = Some(size()?),
            "cgroup.cpu" => {
                let cpus = value.parse().ok().filter(|cpus: &f64| cpus.is_finite() && *cpus >= 0.01);
                limits.cpus = Some(cpus.ok_or_else(|| LeverError::value(id, value, CPU))?);
            }
            "cgroup.cpuset" => limits.cpuset = Some(Attribute::Affinity.normal(value)?),
            "cgroup.io" => limits.io = Some(io_limit(id, value)?),
            _ => return Ok(None),
        }
        Ok(Some(When::ServerStart))
    }

    fn list(&self, machine: &Machine) -> Vec<LeverInfo> {
        RESOURCES.map(|resource| of_resource(machine, resource)).into()
    }

    fn names(&self, _machine: Option<&Machine>) -> Vec<String> {
        RESOURCES.map(id_of).into()
    }
}

fn id_of(resource: Resource) -> String {
    format!("cgroup.{}", resource.name())
}

fn of_resource(machine: &Machine, resource: Resource) -> LeverInfo {
    let (what, takes) = match resource {
        Resource::Memory => ("memory of the server's control group", SIZE),
        Resource::Swap => ("swap of the server's control group, beside its memory", SIZE),
        Resource::Cpu => ("CPU time of the server's control group", CPU),
        Resource::Cpuset => ("CPUs of the server's control group", "a list of CPUs like 0-1,3"),
        Resource::Io => ("I/O of the server's control group on the disk of its data", IO),
    };
    LeverInfo { lacks: reason(resource.check(machine)), ..at_start(&id_of(resource), what, takes) }
}

fn io_limit(id: &str, value: &str) -> Result<IoLimit, LeverError> {
    let wrong = || LeverError::value(id, value, IO);
    let mut limit = IoLimit {
        device: String::new(),
        read_iops: None,
        write_iops: None,
        read_bytes: None,
        write_bytes: None,
    };
    for part in value.split(',') {
        let (name, number) = part.split_once('=').ok_or_else(wrong)?;
        let number = parse_size(number).ok().filter(|n| *n > 0).ok_or_else(wrong)?;
        *match name {
            "read_iops" => &mut limit.read_iops,
            "write_iops" => &mut limit.write_iops,
            "read_bytes" => &mut limit.read_bytes,
            "write_bytes" => &mut limit.write_bytes,
            _ => return Err(wrong()),
        } = Some(number);
    }
    Ok(limit)
}
