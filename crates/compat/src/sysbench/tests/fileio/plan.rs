//! Which request comes next.

use mydyno_stats::rng::Rng;

use crate::sysbench::lua::Numbers;

/// `--file-test-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    SeqWr,
    SeqRewr,
    SeqRd,
    RndRd,
    RndWr,
    RndRw,
}

impl Mode {
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "seqwr" => Self::SeqWr,
            "seqrewr" => Self::SeqRewr,
            "seqrd" => Self::SeqRd,
            "rndrd" => Self::RndRd,
            "rndwr" => Self::RndWr,
            "rndrw" => Self::RndRw,
            _ => return None,
        })
    }

    pub(super) fn is_random(self) -> bool {
        matches!(self, Self::RndRd | Self::RndWr | Self::RndRw)
    }

    pub(super) fn writes(self) -> bool {
        !matches!(self, Self::SeqRd | Self::RndRd)
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::SeqWr => "Doing sequential write (creation) test",
            Self::SeqRewr => "Doing sequential rewrite test",
            Self::SeqRd => "Doing sequential read test",
            Self::RndRd => "Doing random read test",
            Self::RndWr => "Doing random write test",
            Self::RndRw => "Doing random r/w test",
        }
    }
}

/// The settings from which requests are made.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) mode: Mode,
    pub(super) files: usize,
    /// Of a file.
    pub(super) bytes: u64,
    pub(super) block: u64,
    /// Blocks of a request in order; 0 for one.
    pub(super) merged: u64,
    pub(super) ratio: f64,
    /// Requests between syncs of all files; 0 for none.
    pub(super) fsync_every: u64,
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Read { file: usize, offset: u64, length: usize },
    Write { file: usize, offset: u64, length: usize },
    Sync { file: usize },
}

/// How far all threads together are.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// Next place in order.
    file: usize,
    offset: u64,
    reads: u64,
    writes: u64,
    /// Requests since the last syncs.
    since_sync: u64,
    /// Next file to sync, while all are.
    syncing: Option<usize>,
}

impl Course {
    pub(super) fn next(&mut self, plan: &Plan, keys: &Numbers, rng: &mut Rng) -> Request {
        if let Some(file) = self.syncing.take() {
            self.syncing = (file + 1 < plan.files).then_some(file + 1);
            return Request::Sync { file };
        }
        let writes = match plan.mode {
            Mode::RndRw => {
                let reads_next = (self.reads + 1) as f64 / ((self.writes + 1) as f64) < plan.ratio;
                let first = self.reads == 0 && self.writes == 0;
                !(reads_next || first && plan.ratio > 1.0)
            }
            mode => mode.writes(),
        };
        let (file, offset, length) = if plan.mode.is_random() {
            let at = keys.draw(rng) - 1;
            let offset = at % plan.bytes / plan.block * plan.block;
            ((at / plan.bytes) as usize % plan.files, offset, plan.block.min(plan.bytes - offset))
        } else {
            let (file, offset) = (self.file, self.offset);
            let length = (plan.block * plan.merged.max(1)).min(plan.bytes - offset);
            self.offset += length;
            if self.offset >= plan.bytes {
                (self.file, self.offset) = ((file + 1) % plan.files, 0);
            }
            (file, offset, length)
        };
        self.since_sync += 1;
        if plan.mode.writes() && plan.fsync_every > 0 && self.since_sync >= plan.fsync_every {
            (self.since_sync, self.syncing) = (0, Some(0));
        }
        let length = length as usize;
        if writes {
            self.writes += 1;
            Request::Write { file, offset, length }
        } else {
            self.reads += 1;
            Request::Read { file, offset, length }
        }
    }
}
