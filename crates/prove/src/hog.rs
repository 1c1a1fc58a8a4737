//! A process that takes memory in a server's control group, beside the load: the neighbour in an experiment about memory
//! that runs out. The kernel may kill it, which is a result.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use mydyno_host::{Machine, cgroup};
use mydyno_linux::calls::processes;

/// The words with which `mydyno` starts itself as this process; its size, the server and the process that asks follow.
pub const CHILD: [&str; 2] = ["probe", "memory-child"];
/// Bytes that are taken at a time.
const PIECE: usize = 1 << 20;
/// Bytes between two touches: the smallest page size.
const PAGE: usize = 4096;
/// Interval at which the end of the job is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Takes memory in the group of a server until `over`, in a child process. The child ends with this process, however that
/// ends.
///
/// # Errors
/// It cannot be started, or cannot enter the group.
pub(crate) fn beside(bytes: u64, server: u32, over: &dyn Fn() -> bool) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| format!("cannot find mydyno's own program: {e}"))?;
    let words = [bytes.to_string(), server.to_string(), std::process::id().to_string()];
    let mut child = Command::new(program)
        .args(CHILD)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("cannot start a process: {e}"))?;
    loop {
        match child.try_wait() {
            // An exit of its own is an error; a signal is the kernel's, which chose it.
            Ok(Some(status)) => match status.code() {
                Some(code) => return Err(format!("its process ended with status {code}")),
                None => return Ok(()),
            },
            Ok(None) if over() => break,
            Ok(None) => thread::sleep(LOOK),
            Err(error) => return Err(error.to_string()),
        }
    }
    // It may have ended in this moment; then there is nothing left to end.
    let _ = child.kill();
    child.wait().map(drop).map_err(|e| e.to_string())
}

/// The process that takes memory: enters the group of the server's memory, touches this many bytes and keeps them until it
/// is ended.
///
/// # Errors
/// The group cannot be entered, or the process that asks has ended.
pub fn child(bytes: u64, server: u32, asker: u32) -> Result<(), String> {
    if !processes::end_with_parent(asker).map_err(|e| e.to_string())? {
        return Err(format!("process {asker}, which asks for this, has ended"));
    }
    let machine = Machine::real().map_err(|e| e.to_string())?;
    cgroup::join_memory_of(&machine, server).map_err(|e| e.to_string())?;
    let mut taken: Vec<Vec<u8>> = Vec::new();
    while ((taken.len() * PIECE) as u64) < bytes {
        let mut piece = vec![0u8; PIECE];
        // A page that is only reserved is not taken.
        piece.iter_mut().step_by(PAGE).for_each(|byte| *byte = std::hint::black_box(1));
        taken.push(piece);
    }
    loop {
        thread::sleep(Duration::from_secs(1));
        std::hint::black_box(&taken);
    }
}
