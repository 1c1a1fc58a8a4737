//! The work of the specification and that of public drivers, as data: what a run with `--as` does differently.
//!
//! Read from the drivers' sources in November 2026 and compared with tables that they had run on. Round trips are not part of
//! a profile; `--statements` chooses them.

use mydyno_stats::rng::Rng;

use super::inputs::{Deck, Kind, by_cards};

/// Distribution of items, customers or last names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skew {
    /// NURand of clause 2.1.6.
    NuRand,
    /// Each equally likely.
    Uniform,
}

/// How transactions are mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// A shuffled deck of 23 cards.
    Deck,
    /// Independent draws with the weights 10, 10, 1, 1, 1.
    Independent,
}

/// The work of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Value of `--as`.
    pub name: &'static str,
    /// Distribution of items.
    pub items: Skew,
    /// Distribution of customers.
    pub customers: Skew,
    /// Distribution of last names.
    pub names: Skew,
    /// Whether a run has constants of NURand that keep their distance from those of the load (clause 2.1.6.1); the load's else.
    pub has_run_constants: bool,
    /// Order lines of other warehouses in percent.
    pub remote_lines_percent: u64,
    /// Whether the stock of a remote line is that of the supplying warehouse; the home warehouse's else.
    pub takes_remote_stock: bool,
    /// Payments for customers of other warehouses in percent.
    pub remote_payments_percent: u64,
    /// Whether S_YTD, S_ORDER_CNT and S_REMOTE_CNT are written.
    pub writes_stock_sums: bool,
    /// Whether stock comes in before fewer than ten pieces are left; else when there are not more than were ordered.
    pub keeps_ten_pieces: bool,
    /// Whether OL_AMOUNT has taxes and discount, as in the specification's sample program; quantity times price else.
    pub taxes_lines: bool,
    /// The mix.
    pub mix: Mix,
}

/// The specification's work.
pub const SPECIFICATION: Profile = Profile {
    name: "specification",
    items: Skew::NuRand,
    customers: Skew::NuRand,
    names: Skew::NuRand,
    has_run_constants: true,
    remote_lines_percent: 1,
    takes_remote_stock: true,
    remote_payments_percent: 15,
    writes_stock_sums: true,
    keeps_ten_pieces: true,
    taxes_lines: false,
    mix: Mix::Deck,
};

/// All profiles; the first is the default.
pub const PROFILES: [Profile; 4] = [
    SPECIFICATION,
    Profile {
        name: "sysbench-tpcc",
        items: Skew::Uniform,
        customers: Skew::Uniform,
        names: Skew::Uniform,
        remote_lines_percent: 0,
        remote_payments_percent: 0,
        writes_stock_sums: false,
        keeps_ten_pieces: false,
        taxes_lines: true,
        mix: Mix::Independent,
        ..SPECIFICATION
    },
    Profile { name: "go-tpc", takes_remote_stock: false, taxes_lines: true, ..SPECIFICATION },
    Profile {
        name: "hammerdb",
        items: Skew::Uniform,
        has_run_constants: false,
        writes_stock_sums: false,
        keeps_ten_pieces: false,
        taxes_lines: true,
        mix: Mix::Independent,
        ..SPECIFICATION
    },
];

/// Names of all profiles.
pub const NAMES: [&str; 4] = ["specification", "sysbench-tpcc", "go-tpc", "hammerdb"];

impl Profile {
    /// The profile of this name; the specification's where there is none.
    pub fn named(name: &str) -> Self {
        PROFILES.into_iter().find(|profile| profile.name == name).unwrap_or(SPECIFICATION)
    }

    /// The kind of the next transaction.
    pub fn kind(&self, deck: &mut Deck, rng: &mut Rng) -> Kind {
        match self.mix {
            Mix::Deck => deck.deal(rng),
            Mix::Independent => by_cards(rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_goes_by_its_name() {
        assert_eq!(PROFILES.map(|profile| profile.name), NAMES);
        for name in NAMES {
            assert_eq!(Profile::named(name).name, name);
        }
        assert_eq!(Profile::named("other"), SPECIFICATION);
    }
}
