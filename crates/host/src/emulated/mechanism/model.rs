//! Parameters of a drive, its requests, answers and counters.

use serde::{Deserialize, Serialize};

use crate::emulated::drive::Drive;

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
}

/// Parameters of a drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Its mechanics.
    pub drive: Drive,
    /// Its volatile cache.
    pub cache: CacheMode,
    /// Size of that cache.
    pub cache_bytes: u64,
    /// Queue depth: how many requests the drive reorders, nearest first; 1 serves them in order of arrival.
    pub depth: usize,
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
