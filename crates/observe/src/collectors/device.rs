//! The facts of one block device.

use serde_json::Value;

use crate::bag::Bag;
use crate::block;
use crate::parse::{choice, number};
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
pub fn read(source: &Source, name: &str, bag: &Bag) {
    let folder = block::folder(name);
    let device = Device { source, name, folder, bag };
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
    bag: &'a Bag,
}

impl Device<'_> {
    fn put(&self, fact: &str, file: &str, value: Read<Value>) {
        let path = if file.is_empty() { self.folder.clone() } else { format!("{}/{file}", self.folder) };
        self.bag.put(&format!("block.{}.{fact}", self.name), path, value);
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

    /// What only mapped, RAID and loop devices have.
    fn kind_of_its_own(&self) {
        for (fact, file) in
            [("name", "dm/name"), ("raid_level", "md/level"), ("backing_file", "loop/backing_file")]
        {
            self.put_if_there(fact, file, self.text(file).map(Value::from));
        }
        self.put_if_there("raid_degraded", "md/degraded", self.number("md/degraded").map(Value::from));
        self.put_if_there("direct_io", "loop/dio", self.switch("loop/dio"));
    }

    /// What only a disk has.
    fn disk(&self) {
        self.put("transport", "", block::transport(self.source, self.name).map(Value::from));
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
            self.bag.read(&format!("block.{}.controller", self.name), &path, |p| self.source.read(p));
        }
    }
}
