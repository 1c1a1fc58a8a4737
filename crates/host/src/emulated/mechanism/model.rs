//! The model of a drive, its requests, answers and counters.

use serde::{Deserialize, Serialize};

use crate::emulated::drive::Drive;

/// The treatment of data that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheMode {
    /// No volatile cache: what is acknowledged is on the platter.
    Off,
    /// A volatile cache that is written back by a flush.
    On,
    /// A volatile cache, and flushes are acknowledged without doing anything.
    IgnoresFlushes,
}

/// The drive that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Its mechanics.
    pub drive: Drive,
    /// Its volatile cache.
    pub cache: CacheMode,
    /// Size of that cache.
    pub cache_bytes: u64,
    /// Of so many requests the drive itself takes the nearest first; 1: in order of arrival.
    pub depth: usize,
}

/// A request to the drive.
#[derive(Debug)]
pub enum Work {
    /// Bytes to read.
    Read(usize),
    /// Whole sectors to write.
    Write(Vec<u8>),
    /// Bring everything that was acknowledged to the platter.
    Flush,
}

/// An answer of the drive.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The bytes that were read.
    Data(Vec<u8>),
    /// It is written, or flushed.
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
    /// Bytes between where the head was and where it had to go, over all accesses.
    pub seek_bytes: u64,
    /// Time of the head's movements.
    pub seek_ns: u64,
    /// Time that it waited for the angle.
    pub rotation_ns: u64,
    /// Time of transfers.
    pub transfer_ns: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Bytes that were acknowledged and that power cuts lost.
    pub lost_bytes: u64,
    /// Requests that were served without the delays of the model.
    #[serde(rename = "hurried")]
    pub undelayed: u64,
}
