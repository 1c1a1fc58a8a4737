//! Files of a process: `/proc/PID/stat` and `/proc/PID/status`.

use crate::text::{field, kib_field};

/// Fields of proc_pid_stat(5); times are in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat<'a> {
    /// Name, cut at 15 bytes by the kernel.
    pub name: &'a str,
    /// Field 3: state.
    pub state: char,
    /// Field 4: parent.
    pub parent: u32,
    /// Field 10: minor faults.
    pub minor_faults: u64,
    /// Field 12: major faults.
    pub major_faults: u64,
    /// Field 14: user CPU.
    pub user_ticks: u64,
    /// Field 15: system CPU.
    pub system_ticks: u64,
    /// Field 19: nice value.
    pub nice: i64,
    /// Field 20: threads.
    pub threads: u64,
    /// Field 22: start after boot.
    pub start_ticks: u64,
}

impl<'a> Stat<'a> {
    /// Reads the text of the file. `None` when a field is missing or not a number.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (name, fields) = split(text)?;
        let mut all = [""; 23];
        let mut found = 2;
        for one in fields.take(20) {
            found += 1;
            all[found] = one;
        }
        let unsigned = |n: usize| all[n].parse::<u64>().ok();
        Some(Self {
            name,
            state: all[3].chars().next()?,
            parent: all[4].parse().ok()?,
            minor_faults: unsigned(10)?,
            major_faults: unsigned(12)?,
            user_ticks: unsigned(14)?,
            system_ticks: unsigned(15)?,
            nice: all[19].parse().ok()?,
            threads: unsigned(20)?,
            start_ticks: unsigned(22)?,
        })
    }

    /// Whether the process may still run: zombies (Z) and the dead (X, x) have ended.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// State and flags of a process: fields 3 and 9 of its `stat`, `PF_…` of include/linux/sched.h.
pub fn state_and_flags(stat: &str) -> Option<(char, u64)> {
    let (_, mut fields) = split(stat)?;
    Some((fields.next()?.chars().next()?, fields.nth(5)?.parse().ok()?))
}

/// Whether a signal is pending for a process or one of its threads: `ShdPnd` and `SigPnd` of its `status`.
pub fn is_pending(status: &str, signal: u32) -> bool {
    ["SigPnd", "ShdPnd"].iter().any(|name| {
        let mask = field(status, name, ':').and_then(|hex| u64::from_str_radix(hex, 16).ok());
        mask.is_some_and(|mask| signal > 0 && mask.checked_shr(signal - 1).is_some_and(|bits| bits & 1 == 1))
    })
}

/// The addresses between which the arguments of a process lie: fields 48 and 49 (`arg_start`, `arg_end`) of its `stat`. They are 0
/// for a reader who may not see them.
pub fn argument_area(stat: &str) -> Option<(usize, usize)> {
    let (_, fields) = split(stat)?;
    // The first one is field 3.
    let mut fields = fields.skip(48 - 3).map(|one| one.parse::<usize>().ok().filter(|n| *n > 0));
    Some((fields.next()??, fields.next()??)).filter(|(start, end)| start < end)
}

/// The name and the fields from the third on. The name may hold anything, also blanks and parentheses, so it ends at the last one.
fn split(text: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    Some((text.get(open + 1..close)?, text[close + 1..].split_ascii_whitespace()))
}

/// Whether a process has a capability in force: `CapEff` of its `status`, numbers of capabilities(7).
pub fn has_capability(status: &str, number: u32) -> bool {
    let set = field(status, "CapEff", ':').and_then(|hex| u64::from_str_radix(hex, 16).ok());
    set.is_some_and(|set| set.checked_shr(number).is_some_and(|bits| bits & 1 == 1))
}

/// The memory that a process holds, in bytes: `VmRSS` of its `status`. Kernel threads have none.
pub fn resident_bytes(status: &str) -> Option<u64> {
    kib_field(status, "VmRSS")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "4211 (a) b (c) S 1 4211 4211 0 -1 4194560 1000 20 30 40 500 600 7 8 20 -5 31 0 98765 1 2 3";

    #[test]
    fn the_fields_of_stat_are_found_behind_a_name_with_parentheses() {
        let stat = Stat::parse(STAT).unwrap();
        assert_eq!((stat.name, stat.state, stat.parent, stat.nice), ("a) b (c", 'S', 1, -5));
        assert_eq!((stat.minor_faults, stat.major_faults), (1000, 30));
        assert_eq!((stat.user_ticks, stat.system_ticks), (500, 600));
        assert_eq!((stat.threads, stat.start_ticks), (31, 98765));
        assert!(stat.is_alive());
        assert!(!Stat::parse(&STAT.replace(" S ", " Z ")).unwrap().is_alive());
    }

    #[test]
    fn a_name_may_be_a_line_of_stat_itself() {
        let stat = STAT.replace("a) b (c", ") S 1 2 (\n)");
        assert_eq!(Stat::parse(&stat).unwrap().name, ") S 1 2 (\n)");
    }

    #[test]
    fn a_broken_stat_is_none() {
        for text in ["", "1", "1 (x", ")(", "1 (x) S 1 2 3", "1 (x) S a b c d e f g h i j k l m n o p q r s"]
        {
            assert_eq!(Stat::parse(text), None, "{text}");
        }
    }

    #[test]
    fn flags_and_pending_signals_are_read() {
        assert_eq!(state_and_flags(STAT), Some(('S', 4_194_560)));
        assert_eq!(state_and_flags("7 (x) S 1"), None);
        let status = "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n";
        assert!(is_pending(status, 9) && !is_pending(status, 8));
        assert!(!is_pending(status, 0) && !is_pending(status, 65) && !is_pending("", 9));
    }

    #[test]
    fn the_arguments_lie_between_fields_48_and_49() {
        let fields: Vec<String> = (4..=52).map(|n| n.to_string()).collect();
        let stat = format!("7 (x y) R {}", fields.join(" "));
        assert_eq!(argument_area(&stat), Some((48, 49)));
        assert_eq!(argument_area(STAT), None);
        assert_eq!(argument_area(&stat.replace(" 48 49 ", " 0 0 ")), None);
    }

    #[test]
    fn capabilities_and_memory_are_read_from_status() {
        let status = "Name:\tx\nVmRSS:\t    2048 kB\nCapEff:\t0000000000200000\n";
        assert!(has_capability(status, 21) && !has_capability(status, 20) && !has_capability(status, 64));
        assert_eq!(resident_bytes(status), Some(2 << 20));
        assert_eq!(resident_bytes("Name:\tkthreadd\n"), None);
    }
}
