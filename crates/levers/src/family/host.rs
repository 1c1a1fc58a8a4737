//! The whole host: settings of the kernel, swap.

use mydyno_host::{Machine, setting, swap, zram};
use mydyno_model::lever::{LeverInfo, LeverScope};
use mydyno_model::units::parse_size;

use crate::draft::Draft;
use crate::error::LeverError;
use crate::info::{entry, reason};
use crate::kind::Family;
use crate::lever_set::When;

const SIZE: &str = "a size like 512M";

pub(crate) struct Host;

impl Family for Host {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        let size = || parse_size(value).map_err(|_| LeverError::value(id, value, SIZE));
        let server = &mut draft.lever_set.server;
        match id {
            "swap.file" => server.swap_bytes = Some(size()?),
            "swap.zram" => server.zram_bytes = Some(size()?),
            _ if setting::is_known(id) => {
                server.host.push((id.to_owned(), value.to_owned()));
            }
            _ => return Ok(None),
        }
        Ok(Some(When::Host))
    }

    fn list(&self, machine: &Machine) -> Vec<LeverInfo> {
        let swap_file = LeverInfo {
            lacks: reason(swap::check(machine)),
            ..entry("swap.file", "a swap file of this size", SIZE, LeverScope::Host)
        };
        let swap_zram = LeverInfo {
            lacks: reason(zram::check(machine, 0)),
            ..entry("swap.zram", "swap in compressed memory of this size", SIZE, LeverScope::Host)
        };
        let settings = setting::names(machine);
        settings.iter().map(|name| of_setting(machine, name)).chain([swap_file, swap_zram]).collect()
    }

    fn names(&self, machine: Option<&Machine>) -> Vec<String> {
        let settings = machine.map(setting::names).unwrap_or_default();
        settings.into_iter().chain(["swap.file", "swap.zram"].map(str::to_owned)).collect()
    }
}

fn of_setting(machine: &Machine, name: &str) -> LeverInfo {
    let takes = setting::form(machine, name).unwrap_or_default();
    LeverInfo {
        now: setting::read(machine, name).ok(),
        lacks: reason(setting::check(machine, name)),
        ..entry(name, "a setting of the kernel", &takes, LeverScope::Host)
    }
}
