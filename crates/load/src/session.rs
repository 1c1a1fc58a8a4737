//! When a load gains from a session of its own with a low priority, on a host that schedules sessions as groups.

/// Fewest connections with which a transaction load gains: with fewer, its rate falls by some 6 % (measured:
/// docs/journal/load-engine.md).
pub const FEWEST: usize = 32;

/// Most connections with which a load gains: with more, it gathers no more answers.
const MOST: usize = 511;

/// The nice value of the session: a tenth of the weight of another session (sched_prio_to_weight in the kernel: 1,024 at
/// 0, 110 at 10). Lower weights gather no more answers, and starve the client beside foreign load.
pub const NICE: u8 = 10;

/// Whether this host schedules sessions as groups.
pub fn are_groups() -> bool {
    mydyno_linux::Root::real().schedules_sessions()
}

/// Whether a closed loop of so many connections gains from such a session, where loads with fewer than `fewest` do not.
pub fn gains(connections: usize, fewest: usize) -> bool {
    (fewest..=MOST).contains(&connections)
}
