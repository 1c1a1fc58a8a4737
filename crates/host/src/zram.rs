//! Swap in compressed memory (zram). Swapping affects the whole host, so it needs the user's permission.
//!
//! mydyno takes an unused device and recognises it by a random label in its swap header: a device that another program
//! has set up since has another label. The reset that empties it also clears settings that its next user may expect;
//! they are written again. Documentation/admin-guide/blockdev/zram.rst of the kernel.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mydyno_journal::{Change, Context, Journal, JournalError, Lease, Machine, Open, Outcome};
use mydyno_linux::calls;
use mydyno_linux::calls::files;
use mydyno_linux::text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::HostError;
use crate::folder::random_mark;
use crate::privilege::check_admin;
use crate::room::{MEMORY_KEPT, check_memory_for};
use crate::setting::AllowHostChange;
use crate::swap::{self, LABEL_BYTES};
use crate::whitelist::disk_identity;
/// Time limit for other programs, such as udev, to close a device that was made or released.
const PATIENCE: Duration = Duration::from_secs(5);

/// A zram device in use as swap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZramSwap {
    /// As in `zram0`.
    pub device: String,
    /// Its size before compression.
    pub bytes: u64,
    /// The label in its swap header.
    pub label: String,
    /// The identity that distinguishes it from a later device with its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Attributes that were set on it before and that a reset clears, with their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<(String, String)>,
}

/// Attributes that a reset sets to the kernel's default: the algorithm since Linux 6.2, the number of streams before
/// 4.7. `zram_reset_device` of drivers/block/zram/zram_drv.c.
const CHOSEN: [&str; 2] = ["comp_algorithm", "max_comp_streams"];

/// The content of a device.
#[derive(Debug, PartialEq, Eq)]
enum Holds {
    /// None: it has no size.
    Nothing,
    /// mydyno's swap header, or none yet because a command was killed before it wrote one.
    Ours,
    /// Data of another program.
    Another,
}

fn missing_error(missing: &str, remedy: &str) -> HostError {
    HostError::Missing {
        what: "swap in compressed memory".to_owned(),
        missing: missing.to_owned(),
        remedy: remedy.to_owned(),
    }
}

fn none_free() -> HostError {
    missing_error(
        "all zram devices are in use or set up by other programs",
        "run `cat /sys/class/zram-control/hot_add` as root, which makes another one",
    )
}

/// Whether this many bytes can be swapped to memory here.
///
/// # Errors
/// A prerequisite is missing; the error names it and how to get it.
pub fn check(machine: &Machine, bytes: u64) -> Result<(), HostError> {
    let devices = devices(machine);
    if devices.is_empty() {
        return Err(missing_error(
            "this kernel has no zram device",
            "run `modprobe zram`, or boot a kernel that has CONFIG_ZRAM",
        ));
    }
    check_admin(machine, "swap in compressed memory")?;
    let Some(device) = free(machine, &devices) else {
        return Err(none_free());
    };
    if !files::may_write(&attribute(machine, device, "disksize")) {
        return Err(missing_error(
            "sysfs cannot be written to",
            "run as root, outside a container that keeps it read-only",
        ));
    }
    // Incompressible data need as much memory as they have bytes.
    check_memory_for(machine, bytes)
}

/// Swaps to a free device. Returns the number of the journal entry.
///
/// # Errors
/// There is no free device, too little memory, or swapping is not permitted; no device is then used.
pub fn turn_on(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    bytes: u64,
    _allowed: AllowHostChange,
) -> Result<u64, HostError> {
    let machine = lease.machine();
    let bytes = swap::whole_pages("swap.zram", bytes)?;
    check(machine, bytes)?;
    let mut wanted = None;
    let other = |open: &Open| open.as_kind::<ZramSwap>().is_some();
    let recorded = journal.record_beside::<HostError>(lease, purpose, other, || {
        let devices = devices(machine);
        let Some(device) = free(machine, &devices).cloned() else { return Ok(None) };
        let label = random_mark()?[..LABEL_BYTES].to_owned();
        let (disk, chosen) = (disk_identity(machine, &device), chosen(machine, &device));
        let swap = ZramSwap { device, bytes, label, disk, chosen };
        wanted = Some(swap.clone());
        Ok(Some(Box::new(swap)))
    })?;
    // Another program has taken the last free device since the check.
    let (Some(id), Some(swap)) = (recorded, wanted) else { return Err(none_free()) };
    let problem = match swap.set_up(machine) {
        Ok(()) if swap.swapped(machine)?.is_some() => return Ok(id),
        Ok(()) => io::Error::other("it is not in /proc/swaps"),
        Err(e) => e,
    };
    let outcome = swap.turn_off(machine);
    journal.close_with(id, &outcome)?;
    Err(HostError::io("swap to (as root, outside a container)", swap.node(), problem))
}

fn devices(machine: &Machine) -> Vec<String> {
    let entries = fs::read_dir(machine.sys().join("block")).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.strip_prefix("zram").is_some_and(|n| n.parse::<u32>().is_ok()))
        .collect();
    names.sort();
    names
}

fn attribute(machine: &Machine, device: &str, file: &str) -> PathBuf {
    machine.sys().join("block").join(device).join(file)
}

fn number(machine: &Machine, device: &str, file: &str) -> Option<u64> {
    fs::read_to_string(attribute(machine, device, file)).ok()?.trim().parse().ok()
}

fn free<'a>(machine: &Machine, devices: &'a [String]) -> Option<&'a String> {
    let empty = |device: &&String| number(machine, device, "disksize") == Some(0);
    devices.iter().find(|device| empty(device) && !is_set_up(machine, device))
}

/// Whether another program has set a memory limit, a backing disk or a second algorithm on an empty device. A reset
/// would clear them.
fn is_set_up(machine: &Machine, device: &str) -> bool {
    let read = |file| fs::read_to_string(attribute(machine, device, file)).unwrap_or_default();
    let limit = read("mm_stat").split_whitespace().nth(3).is_some_and(|bytes| bytes != "0");
    let backing = !matches!(read("backing_dev").trim(), "" | "none");
    limit || backing || read("recomp_algorithm").contains('[')
}

/// The value of an attribute; of a list of choices the current one.
fn value(machine: &Machine, device: &str, file: &str) -> Option<String> {
    let text = fs::read_to_string(attribute(machine, device, file)).ok()?;
    Some(text::chosen(&text).unwrap_or(text.trim()).to_owned())
}

fn chosen(machine: &Machine, device: &str) -> Vec<(String, String)> {
    CHOSEN.iter().filter_map(|file| Some(((*file).to_owned(), value(machine, device, file)?))).collect()
}

impl ZramSwap {
    fn node(&self) -> PathBuf {
        PathBuf::from("/dev").join(&self.device)
    }

    fn set_up(&self, machine: &Machine) -> io::Result<()> {
        write(&attribute(machine, &self.device, "disksize"), &self.bytes.to_string())?;
        let header = swap::header(self.bytes, &self.label)?;
        let mut device = OpenOptions::new().write(true).open(self.node())?;
        device.write_all(&header)?;
        device.sync_all()?;
        drop(device);
        calls::mounts::swap_on(&self.node())
    }

    fn swapped(&self, machine: &Machine) -> Result<Option<swap::Swap>, HostError> {
        Ok(swap::swaps(machine)?.into_iter().find(|swap| swap.path == self.node()))
    }

    fn holds(&self, machine: &Machine) -> Result<Holds, String> {
        match number(machine, &self.device, "disksize") {
            None | Some(0) => return Ok(Holds::Nothing),
            Some(bytes) if bytes != self.bytes => return Ok(Holds::Another),
            Some(_) => {}
        }
        let mut page = vec![0u8; calls::page_bytes()];
        let read = OpenOptions::new().read(true).open(self.node()).and_then(|mut d| d.read_exact(&mut page));
        read.map_err(|e| format!("cannot read {}: {e}: run it as root", self.node().display()))?;
        let blank = page.iter().all(|byte| *byte == 0);
        Ok(if blank || swap::label(&page) == Some(self.label.as_bytes()) {
            Holds::Ours
        } else {
            Holds::Another
        })
    }

    /// Stops swapping to it, which reads its pages back, and empties it, if it still carries the recorded label.
    fn turn_off(&self, machine: &Machine) -> Outcome {
        match self.holds(machine) {
            Err(why) => return Outcome::failed(why),
            Ok(Holds::Nothing) => return self.choose_again(machine, "it is free"),
            Ok(Holds::Another) => {
                return Outcome::left_alone("it was emptied, and another program uses the device now");
            }
            Ok(Holds::Ours) => {}
        }
        match self.swapped(machine).and_then(|swapped| Ok((swapped, machine.available_bytes()?))) {
            Err(error) => return Outcome::failed(error.to_string()),
            Ok((Some(swap), available)) if swap.used > 0 && swap.used + MEMORY_KEPT > available => {
                return Outcome::failed(format!(
                    "{} bytes are swapped to it, only {available} bytes of memory are free, and {MEMORY_KEPT} are to stay \
                     free: end what needs it, and run `mydyno host restore`",
                    swap.used
                ));
            }
            Ok((Some(_), _)) => {
                if let Err(e) = calls::mounts::swap_off(&self.node()) {
                    return Outcome::failed(format!("cannot turn it off: {e}: run it as root"));
                }
            }
            Ok((None, _)) => {}
        }
        self.reset(machine)
    }

    fn reset(&self, machine: &Machine) -> Outcome {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match write(&attribute(machine, &self.device, "reset"), "1") {
                Ok(()) => return self.choose_again(machine, "turned off and emptied"),
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(e) => return Outcome::failed(format!("cannot empty it: {e}")),
            }
        }
    }

    /// Writes the cleared attributes again. A command that was killed after the reset leaves an empty device, too.
    fn choose_again(&self, machine: &Machine, done: &str) -> Outcome {
        if disk_identity(machine, &self.device) != self.disk {
            return Outcome::restored(done);
        }
        for (file, was) in &self.chosen {
            if value(machine, &self.device, file).is_none_or(|now| now == *was) {
                continue;
            }
            let path = attribute(machine, &self.device, file);
            if let Err(e) = write(&path, was) {
                return Outcome::failed(format!(
                    "{done}, but {file} cannot be set back to {was}: {e}: run `echo {was} > {}` as root",
                    path.display()
                ));
            }
        }
        Outcome::restored(done)
    }
}

impl Change for ZramSwap {
    fn kind(&self) -> &str {
        "zram"
    }

    fn what(&self) -> String {
        format!("swap in compressed memory {}", self.device)
    }

    fn key(&self) -> String {
        format!("zram:{}", self.device)
    }

    fn was(&self) -> Value {
        Value::from("off")
    }

    fn now(&self) -> Value {
        Value::from(format!("{} bytes", self.bytes))
    }

    fn put_back(&self, context: &Context) -> Result<Outcome, JournalError> {
        Ok(self.turn_off(context.machine))
    }
}

fn write(path: &std::path::Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}
