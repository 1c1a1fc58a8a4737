//! Counters of all threads of a process in one request, by the kernel's taskstats interface (generic netlink;
//! accounting/taskstats.rst of the kernel). It needs CAP_NET_ADMIN.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Size of the receive buffer, far above that of an answer.
const LARGEST: usize = 8192;

/// struct nlmsghdr and struct genlmsghdr.
const HEADERS: usize = 16 + 4;

const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const TASKSTATS_CMD_GET: u8 = 1;
const TASKSTATS_CMD_ATTR_TGID: u16 = 2;
const TASKSTATS_TYPE_STATS: u16 = 3;
const TASKSTATS_TYPE_AGGR_TGID: u16 = 5;

/// Offsets in struct taskstats, the same in every version since the first (include/uapi/linux/taskstats.h).
const NVCSW: usize = 272;
const NIVCSW: usize = 280;

/// Context switches of a process, summed over its live threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// Context switches because a thread waited.
    pub voluntary: u64,
    /// Context switches because the scheduler preferred another thread.
    pub involuntary: u64,
}

/// A netlink socket to the kernel's taskstats family.
#[derive(Debug)]
pub struct Taskstats {
    socket: OwnedFd,
    family: u16,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Taskstats {
    /// Opens the socket and looks up the family.
    ///
    /// # Errors
    /// The kernel has no taskstats, or refuses a netlink socket.
    pub fn open() -> io::Result<Self> {
        // SAFETY: socket has no preconditions; the result is checked before it is owned.
        let fd = unsafe {
            libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_GENERIC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just made this descriptor, which has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut taskstats =
            Self { socket, family: libc::GENL_ID_CTRL as u16, sequence: 0, buffer: vec![0; LARGEST] };
        taskstats.limit_waiting()?;
        let answer = taskstats.request(CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0")?;
        let id =
            attribute(&answer, CTRL_ATTR_FAMILY_ID).and_then(|bytes| Some([*bytes.first()?, *bytes.get(1)?]));
        taskstats.family =
            id.map(u16::from_ne_bytes).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        Ok(taskstats)
    }

    /// Limits the wait for an answer: the kernel answers at once or not at all, and a sampler must not hang.
    fn limit_waiting(&self) -> io::Result<()> {
        let limit = libc::timeval { tv_sec: 0, tv_usec: 200_000 };
        // SAFETY: the option's value is a timeval whose size is given.
        let rc = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const limit).cast(),
                size_of::<libc::timeval>() as libc::socklen_t,
            )
        };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Context switches of a process.
    ///
    /// # Errors
    /// Not permitted, no such process, or an invalid answer.
    pub fn switches(&mut self, pid: u32) -> io::Result<Switches> {
        let answer = self.request(TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_TGID, &pid.to_ne_bytes())?;
        let stats =
            attribute(&answer, TASKSTATS_TYPE_AGGR_TGID).and_then(|all| attribute(all, TASKSTATS_TYPE_STATS));
        let number = |place: usize| -> Option<u64> {
            Some(u64::from_ne_bytes(stats?.get(place..place + 8)?.try_into().ok()?))
        };
        match (number(NVCSW), number(NIVCSW)) {
            (Some(voluntary), Some(involuntary)) => Ok(Switches { voluntary, involuntary }),
            _ => Err(io::Error::from_raw_os_error(libc::EPROTO)),
        }
    }

    /// Sends a command with one attribute and gives the attributes of the answer.
    fn request(&mut self, command: u8, kind: u16, value: &[u8]) -> io::Result<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = message(self.family, self.sequence, command, kind, value);
        // SAFETY: the pointer and the length are those of a buffer that outlives the call.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel writes at most the length of the buffer that is given.
        let got = unsafe {
            libc::recv(self.socket.as_raw_fd(), self.buffer.as_mut_ptr().cast(), self.buffer.len(), 0)
        };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        payload(self.buffer.get(..got).unwrap_or_default(), self.sequence).map(<[u8]>::to_vec)
    }
}

/// A netlink message with one attribute.
fn message(family: u16, sequence: u32, command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let attribute = 4 + value.len();
    let whole = HEADERS + attribute.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(whole);
    bytes.extend((whole as u32).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    // The port of the sender, which the kernel fills in.
    bytes.extend([0; 4]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend((attribute as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(whole, 0);
    bytes
}

/// The attributes of an answer to the request, or its error. A late answer to an earlier request is an error.
fn payload(answer: &[u8], sequence: u32) -> io::Result<&[u8]> {
    let wrong = || io::Error::from_raw_os_error(libc::EPROTO);
    let kind = answer.get(4..6).and_then(|b| b.try_into().ok()).map(u16::from_ne_bytes).ok_or_else(wrong)?;
    if answer.get(8..12) != Some(sequence.to_ne_bytes().as_slice()) {
        return Err(wrong());
    }
    if i32::from(kind) == libc::NLMSG_ERROR {
        let code =
            answer.get(16..20).and_then(|b| b.try_into().ok()).map(i32::from_ne_bytes).ok_or_else(wrong)?;
        return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
    }
    answer.get(HEADERS..).ok_or_else(wrong)
}

/// The value of an attribute in a sequence of attributes.
fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    while bytes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let found = u16::from_ne_bytes([bytes[2], bytes[3]]);
        let value = bytes.get(4..length)?;
        if found == kind {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_and_broken_rows_end() {
        let mut row = vec![5, 0, 7, 0, 9, 0, 0, 0];
        row.extend([6, 0, 8, 0, 1, 2, 0, 0]);
        assert_eq!(attribute(&row, 7), Some([9].as_slice()));
        assert_eq!(attribute(&row, 8), Some([1, 2].as_slice()));
        assert_eq!(attribute(&row, 9), None);
        for broken in [vec![0, 0, 1, 0], vec![255, 0, 7, 0, 1], vec![4, 0], vec![3, 0, 7, 0]] {
            assert_eq!(attribute(&broken, 9), None);
        }
        assert!(payload(&[], 0).is_err());
        assert!(payload(&[0; 18], 0).is_err());
        assert!(payload(&[0; 20], 0).is_ok());
        assert!(payload(&[0; 20], 1).is_err(), "the answer to another request");
    }

    #[test]
    fn a_request_has_the_lengths_of_netlink() {
        let bytes = message(0x1c, 9, 1, 2, &7_u32.to_ne_bytes());
        assert_eq!(bytes.len(), 28);
        assert_eq!(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]), 28);
        assert_eq!(message(1, 9, 1, 2, b"TASKSTATS\0").len(), 36);
    }

    #[test]
    fn switches_are_the_sums_over_the_threads() {
        let pid = std::process::id();
        let Ok(mut taskstats) = Taskstats::open() else { return };
        match taskstats.switches(pid) {
            Ok(_) => {}
            Err(e) if e.raw_os_error() == Some(libc::EPERM) => return,
            Err(e) => panic!("{e}"),
        }
        // A child that only waits does not switch while both are read.
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let (text, switches) = loop {
            let before = taskstats.switches(child.id()).unwrap();
            let text = std::fs::read_to_string(&status).unwrap();
            if taskstats.switches(child.id()).unwrap() == before && text.contains("State:\tS") {
                break (text, before);
            }
        };
        let line = |key: &str| crate::text::field(&text, key, ':').unwrap().parse::<u64>().unwrap();
        assert_eq!(switches.voluntary, line("voluntary_ctxt_switches"));
        assert_eq!(switches.involuntary, line("nonvoluntary_ctxt_switches"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(taskstats.switches(u32::MAX).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
