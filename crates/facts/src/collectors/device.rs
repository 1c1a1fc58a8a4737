//! The facts of one block device.

use serde_json::Value;

use crate::block;
use crate::parse::{choice, number};
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Numbers below `queue/`: fact, file, factor to the fact's unit.
const NUMBERS: [(&str, &str, u64); 12] = [
    ("nr_requests", "nr_requests", 1),
    ("read_ahead_bytes", "read_ahead_kb", 1024),
    ("max_request_bytes", "max_sectors_kb", 1024),
    ("logical_block_bytes", "logical_block_size", 1),
    ("physical_block_bytes", "physical_block_size", 1),
    ("optimal_request_bytes", "optimal_io_size", 1),
    ("atomic_write_bytes", "atomic_write_unit_max_bytes", 1),
    ("discard_max_bytes", "discard_max_bytes", 1),
    ("write_throttle_target_us", "wbt_lat_usec", 1),
    ("nomerges", "nomerges", 1),
    ("rq_affinity", "rq_affinity", 1),
    ("timeout_ms", "io_timeout", 1),
];

/// Puts what the kernel tells about a device.
pub fn read(source: &Source, name: &str, readings: &Readings) {
    let folder = block::folder(name);
    let device = Device { source, name, folder, readings };
    device.put("type", "", Ok(block::kind(source, name).into()));
    device.put("below", "slaves", block::below(source, name).map(Value::from));
    device.put("size_bytes", "size", device.number("size").and_then(|sectors| device.times(sectors, 512)));
    device.put("read_only", "ro", device.switch("ro"));
    // A partition has the queue of its disk.
    if source.exists(&format!("{}/queue", device.folder)) {
        device.queue();
    }
    device.kind_of_its_own();
    if block::below(source, name).is_ok_and(|below| below.is_empty()) {
        device.disk();
    }
}

struct Device<'a> {
    source: &'a Source,
    name: &'a str,
    folder: String,
    readings: &'a Readings,
}

impl Device<'_> {
    fn put(&self, fact: &str, file: &str, value: Read<Value>) {
        let path = if file.is_empty() { self.folder.clone() } else { format!("{}/{file}", self.folder) };
        self.readings.put(&format!("block.{}.{fact}", self.name), path, value);
    }

    /// Puts a fact that only some devices have.
    fn put_if_there(&self, fact: &str, file: &str, value: Read<Value>) {
        if !matches!(value, Err(Missing::Absent(_))) {
            self.put(fact, file, value);
        }
    }

    fn text(&self, file: &str) -> Read<String> {
        self.source.read(&format!("{}/{file}", self.folder))
    }

    fn number(&self, file: &str) -> Read<u64> {
        let path = format!("{}/{file}", self.folder);
        number(&self.source.read(&path)?, &path)
    }

    fn switch(&self, file: &str) -> Read<Value> {
        Ok((self.number(file)? != 0).into())
    }

    fn times(&self, number: u64, factor: u64) -> Read<Value> {
        let product = number.checked_mul(factor).map(Value::from);
        product.ok_or_else(|| Missing::Error(format!("{}: {number} × {factor} is too large", self.folder)))
    }

    fn queue(&self) {
        let scheduler = "queue/scheduler";
        self.put(
            "scheduler",
            scheduler,
            self.text(scheduler).and_then(|t| Ok(choice(&t, scheduler)?.into())),
        );
        self.put("schedulers", scheduler, self.text(scheduler).map(|t| t.replace(['[', ']'], "").into()));
        self.put("write_cache", "queue/write_cache", self.text("queue/write_cache").map(Value::from));
        for (fact, file) in
            [("fua", "queue/fua"), ("rotational", "queue/rotational"), ("iostats", "queue/iostats")]
        {
            self.put(fact, file, self.switch(file));
        }
        for (fact, file, factor) in NUMBERS {
            let file = format!("queue/{file}");
            self.put_if_there(fact, &file, self.number(&file).and_then(|n| self.times(n, factor)));
        }
    }

    /// Puts attributes that only mapped, RAID and loop devices have.
    fn kind_of_its_own(&self) {
        for (fact, file) in [
            ("name", "dm/name"),
            ("raid_level", "md/level"),
            ("raid_action", "md/sync_action"),
            ("backing_file", "loop/backing_file"),
        ] {
            self.put_if_there(fact, file, self.text(file).map(Value::from));
        }
        self.put_if_there("raid_degraded", "md/degraded", self.number("md/degraded").map(Value::from));
        self.put_if_there("direct_io", "loop/dio", self.switch("loop/dio"));
        let file = "alignment_offset";
        self.put_if_there(
            "misaligned_bytes",
            file,
            misaligned(self.text(file), &self.folder).map(Value::from),
        );
        if let Some(layer) = self.text("dm/uuid").ok().and_then(|uuid| layer_of(&uuid)) {
            self.put("layer", "dm/uuid", Ok(layer.into()));
        }
    }

    /// Puts attributes that only disks have.
    fn disk(&self) {
        self.put("transport", "", block::transport(self.source, self.name).map(Value::from));
        self.put_if_there("state", "device/state", self.text("device/state").map(Value::from));
        self.put_if_there("model", "device/model", self.text("device/model").map(Value::from));
        // NVMe and SCSI have different names for it.
        for file in ["device/firmware_rev", "device/rev"] {
            self.put_if_there("firmware", file, self.text(file).map(Value::from));
        }
        let scsi = format!("{}/device/scsi_disk", self.folder);
        for id in self.source.list(&scsi).unwrap_or_default() {
            let file = format!("device/scsi_disk/{id}/cache_type");
            self.put("drive_cache", &file, self.text(&file).map(Value::from));
            // `0:0:1:0` is host 0.
            let host = id.split(':').next().unwrap_or_default();
            let path = format!("/sys/class/scsi_host/host{host}/proc_name");
            self.readings.read(&format!("block.{}.controller", self.name), &path, |p| self.source.read(p));
        }
    }
}

/// LVM marks internal volumes by a suffix of the uuid (dm_build_dm_uuid of LVM2).
fn layer_of(uuid: &str) -> Option<String> {
    let rest = uuid.strip_prefix("LVM-")?;
    let (_, layer) = rest.split_once('-')?;
    Some(if ["tpool", "tdata", "tmeta", "pool"].contains(&layer) { "pool" } else { layer }.to_owned())
}

/// -1 means that the device cannot be aligned at all (sysfs-block of the kernel), which is as bad as a misaligned one.
fn misaligned(text: Read<String>, folder: &str) -> Read<u64> {
    let path = format!("{folder}/alignment_offset");
    Ok(number::<i64>(&text?, &path)?.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_volumes_are_told_by_their_uuids() {
        for (uuid, layer) in [
            ("LVM-abcXYZ-real", Some("real")),
            ("LVM-abcXYZ-cow", Some("cow")),
            ("LVM-abcXYZ-tpool", Some("pool")),
            ("LVM-abcXYZ", None),
            ("CRYPT-LUKS2-abc-real", None),
        ] {
            assert_eq!(layer_of(uuid).as_deref(), layer, "{uuid}");
        }
    }

    #[test]
    fn a_device_that_cannot_be_aligned_is_misaligned() {
        assert_eq!(misaligned(Ok("0".to_owned()), "/d"), Ok(0));
        assert_eq!(misaligned(Ok("-1".to_owned()), "/d"), Ok(1));
        assert_eq!(misaligned(Ok("3584".to_owned()), "/d"), Ok(3584));
    }
}
