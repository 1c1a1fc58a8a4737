//! The process of the server that is sampled, which changes when the server is restarted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of the server's process. The connection sets it; the samplers that read the files of the process follow it.
#[derive(Debug, Clone, Default)]
pub struct ServerPid(Arc<AtomicU32>);

impl ServerPid {
    /// The process, once it is known.
    pub fn new(pid: Option<u32>) -> Self {
        let followed = Self::default();
        followed.set(pid);
        followed
    }

    /// Replaces it; `None` when the process is not visible.
    pub fn set(&self, pid: Option<u32>) {
        // Process 0 is the idle task and never a server.
        self.0.store(pid.unwrap_or(0), Ordering::Relaxed);
    }

    /// The process, if it is known.
    pub fn get(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }
}
