//! Parameters of a drive, its requests, answers and counters.

use serde::{Deserialize, Serialize};

use crate::emulated::drive::{Drive, Service};
use crate::emulated::flash::Flash;

/// The write cache's treatment of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheMode {
    /// No volatile cache: acknowledged data are on the platter.
    Off,
    /// A volatile cache that is written back by a flush.
    On,
    /// A volatile cache; flushes are acknowledged and ignored.
    IgnoresFlushes,
    /// A cache with a battery, as that of a RAID controller: flushes need not wait, and a power cut loses nothing.
    Protected,
}

fn one() -> usize {
    1
}

/// Parameters of a drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Its mechanics.
    pub drive: Drive,
    /// The times of a solid-state drive, which has no mechanics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<Flash>,
    /// How many drives, or dies of a solid-state drive, the bytes are spread over.
    #[serde(default = "one")]
    pub heads: usize,
    /// The length of a stripe on each of them.
    #[serde(default)]
    pub stripe_bytes: u64,
    /// Its write cache.
    pub cache: CacheMode,
    /// Size of that cache.
    pub cache_bytes: u64,
    /// Queue depth: how many requests the drive reorders, nearest first; 1 serves them in order of arrival.
    pub depth: usize,
}

impl Model {
    /// The model of one of its drives.
    pub fn of_one_drive(&self) -> Self {
        if self.heads <= 1 {
            return self.clone();
        }
        let heads = self.heads as u64;
        let stripes = self.drive.bytes.div_ceil(self.stripe_bytes).div_ceil(heads);
        let drive = Drive { bytes: stripes * self.stripe_bytes, ..self.drive };
        Self { drive, heads: 1, cache_bytes: self.cache_bytes / heads, ..self.clone() }
    }

    /// The cost of an access that begins at `start_ns` with the head at an offset.
    pub(super) fn service(&self, head: u64, start_ns: u64, of: Access) -> Service {
        match &self.flash {
            Some(flash) => flash.service(of.offset, of.length, of.writes),
            None => self.drive.service(head, start_ns, of.offset, of.length),
        }
    }

    /// For how long after a read the drive has the bytes behind it in its buffer; `None` where it has none.
    pub(super) fn reads_ahead_ns(&self) -> Option<u64> {
        self.flash.is_none().then_some(self.drive.rotation_ns)
    }
}

/// A range that is read or written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    /// The first byte.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) length: u64,
    /// Whether it writes.
    pub(super) writes: bool,
}

/// A request to the drive.
#[derive(Debug)]
pub enum Work {
    /// Bytes to read.
    Read(usize),
    /// Whole sectors to write.
    Write(Vec<u8>),
    /// Write all acknowledged data to the platter.
    Flush,
}

/// An answer of the drive.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The bytes that were read.
    Data(Vec<u8>),
    /// The data are written, or flushed.
    Done,
    /// The power is off.
    NoPower,
}

/// Counters of the drive since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Requests to read.
    pub reads: u64,
    /// Requests to write.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Accesses of the head to the platter.
    pub accesses: u64,
    /// Distance of all seeks, in bytes.
    pub seek_bytes: u64,
    /// Time of the head's movements.
    pub seek_ns: u64,
    /// Rotational delay.
    pub rotation_ns: u64,
    /// Time of transfers.
    pub transfer_ns: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Acknowledged bytes that power cuts lost.
    pub lost_bytes: u64,
    /// Requests that were served without the delays of the model.
    #[serde(rename = "hurried")]
    pub undelayed: u64,
}

impl Counters {
    /// The sums of both.
    pub(in crate::emulated) fn plus(self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            flushes: self.flushes + other.flushes,
            accesses: self.accesses + other.accesses,
            seek_bytes: self.seek_bytes + other.seek_bytes,
            seek_ns: self.seek_ns + other.seek_ns,
            rotation_ns: self.rotation_ns + other.rotation_ns,
            transfer_ns: self.transfer_ns + other.transfer_ns,
            cuts: self.cuts + other.cuts,
            lost_bytes: self.lost_bytes + other.lost_bytes,
            undelayed: self.undelayed + other.undelayed,
        }
    }
}
