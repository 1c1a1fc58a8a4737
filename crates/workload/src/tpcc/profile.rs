//! The work of the specification and that of public drivers, as data: what a run with `--as` does differently.
//!
//! Read from the drivers' sources in November 2026 and compared with tables that they had run on.

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

/// How many statements the steps of a transaction are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One for each step.
    Single,
    /// One for all items, one for the stock and one for the lines of a new order.
    Batched,
    /// A call of a stored procedure for the whole transaction.
    Procedure,
}

impl Form {
    /// Round trips of a new order of so many lines, BEGIN and COMMIT included.
    pub fn round_trips(self, lines: u64) -> u64 {
        match self {
            Self::Single => 7 + 4 * lines,
            Self::Batched => 10 + lines,
            Self::Procedure => 1,
        }
    }

    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Batched => "batched",
            Self::Procedure => "procedure",
        }
    }
}

/// Where a transaction is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// By a statement of its own after the last step: the locks are held for one more round trip.
    Statement,
    /// Within the procedure that does the work.
    InProcedure,
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
    /// The statements.
    pub form: Form,
    /// Whether statements are sent as text; prepared else.
    pub sends_text: bool,
    /// Whether the driver pings the server before each transaction.
    pub pings: bool,
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
    form: Form::Single,
    sends_text: false,
    pings: false,
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
        sends_text: true,
        ..SPECIFICATION
    },
    Profile {
        name: "go-tpc",
        takes_remote_stock: false,
        taxes_lines: true,
        form: Form::Batched,
        pings: true,
        ..SPECIFICATION
    },
    Profile {
        name: "hammerdb",
        items: Skew::Uniform,
        has_run_constants: false,
        writes_stock_sums: false,
        keeps_ten_pieces: false,
        taxes_lines: true,
        mix: Mix::Independent,
        form: Form::Procedure,
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

    /// Where it commits.
    pub fn commit(&self) -> Commit {
        if self.form == Form::Procedure { Commit::InProcedure } else { Commit::Statement }
    }

    /// Round trips of a new order of so many lines.
    pub fn round_trips(&self, lines: u64) -> u64 {
        u64::from(self.pings) + self.form.round_trips(lines)
    }

    /// The work in words, by aspect.
    pub fn work(&self) -> Vec<(&'static str, String)> {
        let skew = |skew| if skew == Skew::NuRand { "NURand" } else { "uniform" }.to_owned();
        let either = |first: bool, yes: &str, no: &str| if first { yes } else { no }.to_owned();
        vec![
            ("skew of items", skew(self.items)),
            ("skew of customers", skew(self.customers)),
            ("skew of last names", skew(self.names)),
            ("constants of NURand", either(self.has_run_constants, "of the run", "those of the load")),
            ("order lines of other warehouses", format!("{} %", self.remote_lines_percent)),
            (
                "stock of such a line",
                either(self.takes_remote_stock, "of the supplying warehouse", "of the home warehouse"),
            ),
            ("payments of other warehouses", format!("{} %", self.remote_payments_percent)),
            ("s_ytd, s_order_cnt, s_remote_cnt", either(self.writes_stock_sums, "written", "never written")),
            (
                "rule for low stock",
                either(
                    self.keeps_ten_pieces,
                    "ten pieces are left, else 91 come in",
                    "more are left than were ordered, else 91 come in",
                ),
            ),
            ("amount of a line", either(self.taxes_lines, "with taxes and discount", "quantity × price")),
            ("mix", either(self.mix == Mix::Deck, "deck of 23 cards", "independent draws")),
            ("round trips of an order of ten lines", self.round_trips(10).to_string()),
            ("protocol", either(self.sends_text, "text", "prepared")),
            (
                "COMMIT",
                either(self.commit() == Commit::Statement, "a round trip of its own", "within the procedure"),
            ),
        ]
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

    /// The facts of the drivers' sources and tables, typed a second time.
    #[test]
    fn profiles_hold_what_the_drivers_sources_show() {
        let row = |name: &str| {
            let p = Profile::named(name);
            (
                (p.remote_lines_percent, p.takes_remote_stock, p.remote_payments_percent),
                (p.items, p.customers, p.names, p.has_run_constants),
                (p.writes_stock_sums, p.keeps_ten_pieces, p.taxes_lines),
                (p.round_trips(10), p.sends_text, p.mix, p.commit()),
            )
        };
        let (nurand, uniform) = (Skew::NuRand, Skew::Uniform);
        assert_eq!(
            row("specification"),
            (
                (1, true, 15),
                (nurand, nurand, nurand, true),
                (true, true, false),
                (47, false, Mix::Deck, Commit::Statement)
            )
        );
        assert_eq!(
            row("sysbench-tpcc"),
            (
                (0, true, 0),
                (uniform, uniform, uniform, true),
                (false, false, true),
                (47, true, Mix::Independent, Commit::Statement)
            )
        );
        assert_eq!(
            row("go-tpc"),
            (
                (1, false, 15),
                (nurand, nurand, nurand, true),
                (true, true, true),
                (21, false, Mix::Deck, Commit::Statement)
            )
        );
        assert_eq!(
            row("hammerdb"),
            (
                (1, true, 15),
                (uniform, nurand, nurand, false),
                (false, false, true),
                (1, false, Mix::Independent, Commit::InProcedure)
            )
        );
    }

    #[test]
    fn profiles_that_differ_say_so_in_words() {
        let words = |name: &str| Profile::named(name).work();
        for (n, name) in NAMES.iter().enumerate() {
            assert!(NAMES[..n].iter().all(|other| words(other) != words(name)), "{name}");
        }
    }
}
