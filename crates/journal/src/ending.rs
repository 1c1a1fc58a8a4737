//! Processes that are being killed: the kernel has not finished to end them, but they execute no user code any more.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use mydyno_linux::process::{is_pending, state_and_flags};

/// Time limit for such a process to end. It has to be scheduled once more and to release its memory.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);

/// The same number on every architecture: signal(7).
const SIGKILL: u32 = 9;

/// `PF_EXITING` among the flags of `/proc/PID/stat` (include/linux/sched.h).
const EXITING: u64 = 0x4;

/// Waits while a process is being killed, ten seconds at most. The kernel may kill a process together with the command
/// that started it; it ends a moment after that command.
pub fn wait_for_killed(proc: &Path, pid: u32) {
    let folder = proc.join(pid.to_string());
    let began = Instant::now();
    // The kernel clears the pending signal shortly before it sets the flag, so having seen either once is enough.
    let mut killed = false;
    while let Some(flags) = flags_if_alive(&folder) {
        killed |= flags & EXITING != 0 || has_sigkill(&folder);
        if !killed || began.elapsed() >= PATIENCE {
            return;
        }
        std::thread::sleep(POLL);
    }
}

/// The flags of a process; `None` when it does not exist or is a zombie.
fn flags_if_alive(folder: &Path) -> Option<u64> {
    let stat = fs::read(folder.join("stat")).ok()?;
    let (state, flags) = state_and_flags(&String::from_utf8_lossy(&stat))?;
    (!matches!(state, 'Z' | 'X' | 'x')).then_some(flags)
}

fn has_sigkill(folder: &Path) -> bool {
    let status = fs::read(folder.join("status")).unwrap_or_default();
    is_pending(&String::from_utf8_lossy(&status), SIGKILL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_exits_or_has_sigkill_pending_is_being_killed() {
        let proc = tempfile::tempdir().unwrap();
        let folder = proc.path().join("7");
        fs::create_dir(&folder).unwrap();
        let cases = [
            ("R", 0x40_0100, "0000000000000000", "0000000000000000", false),
            ("R", 0x40_0104, "0000000000000000", "0000000000000000", true),
            ("D", 0x40_0100, "0000000000000100", "0000000000000000", true),
            ("S", 0x40_0100, "0000000000000000", "0000000000000100", true),
            ("S", 0x40_0100, "0000000000004002", "0000000000000000", false),
            ("Z", 0x40_010c, "0000000000000100", "0000000000000000", false),
        ];
        for (state, flags, own, shared, expected) in cases {
            fs::write(folder.join("stat"), format!("7 (a) b) {state} 1 7 7 0 -1 {flags} 1 2 3\n")).unwrap();
            fs::write(folder.join("status"), format!("Name:\ta\nSigPnd:\t{own}\nShdPnd:\t{shared}\n"))
                .unwrap();
            let seen = flags_if_alive(&folder).is_some_and(|f| f & EXITING != 0 || has_sigkill(&folder));
            assert_eq!(seen, expected, "{state} {flags:x} {own} {shared}");
        }
        assert_eq!(flags_if_alive(&proc.path().join("8")), None);
    }

    #[test]
    fn a_killed_process_is_waited_for() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        child.kill().unwrap();
        wait_for_killed(Path::new("/proc"), child.id());
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        assert_eq!(state_and_flags(&stat).unwrap().0, 'Z', "{stat}");
        child.wait().unwrap();
    }
}
