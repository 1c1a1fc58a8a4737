//! Options of the workload.

use super::profile::{self, Form as Statements, Profile};
use super::tables::Layout;
use crate::engine;
use crate::options::{Default, Form, OptionError, OptionSpec, Options};

/// All of them.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec::count(
        "warehouses",
        1,
        100_000,
        1,
        "number of warehouses, about 100 MB each; all other sizes follow from it",
    ),
    OptionSpec::count(
        "sets",
        1,
        100,
        1,
        "sets of the nine tables, each with so many warehouses; connections are dealt to them in turn. The tables of several sets are numbered: warehouse1, warehouse2",
    ),
    OptionSpec {
        name: "home",
        form: Form::Choice(&["roaming", "fixed"]),
        default: Default::Word("roaming"),
        help: "home warehouse of a transaction: roaming draws one for each, so that any number of connections loads all warehouses; fixed gives each connection its own, as the specification's terminals have and as --wait does",
    },
    OptionSpec {
        name: "statements",
        form: Form::Choice(&["auto", "single", "batched", "procedure"]),
        default: Default::Word("auto"),
        help: "single sends one statement for each step, as the specification's sample programs; batched reads all items and all stock of a new order with one statement each and inserts its lines with one; procedure calls a stored procedure that prepare makes; auto: as the driver of --as does, single for the specification",
    },
    OptionSpec::switch(
        "text",
        false,
        "send statements as text; else they are prepared, but for a driver of --as that sends text",
    ),
    OptionSpec {
        name: "as",
        form: Form::Choice(&profile::NAMES),
        default: Default::Word("specification"),
        help: "do the work of this driver: its skew, remote lines and payments, written columns, statements and mix; `check` finds what it leaves out",
    },
    OptionSpec::switch(
        "wait",
        false,
        "keying and think times of the specification's terminals (clause 5.2.5), one connection a terminal; --connections then follows from --terminals",
    ),
    OptionSpec::count("terminals", 0, 100_000, 0, "terminals of --wait; 0: ten for each warehouse"),
    OptionSpec::count(
        "delivery-connections",
        0,
        1_000,
        0,
        "connections that execute deliveries which the others only queue, as clause 2.7.2 asks; 0: each connection waits for its own, and with --wait one connection for each 500 terminals",
    ),
    OptionSpec::switch(
        "foreign-keys",
        false,
        "make the tables with the foreign keys of the specification (clause 1.3), which no driver but the server needs",
    ),
    engine::OPTION,
];

/// Terminals that one connection for deliveries serves: 500 terminals queue about one delivery a second.
const TERMINALS_PER_DELIVERY_CONNECTION: u64 = 500;

/// The options, resolved.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    /// The work.
    pub profile: Profile,
    /// The tables.
    pub layout: Layout,
    /// Whether each transaction draws a home warehouse.
    pub is_roaming: bool,
    /// Terminals, where they wait.
    pub terminals: Option<u64>,
    /// Connections that execute queued deliveries.
    pub delivery_connections: u64,
}

impl Chosen {
    /// Reads the options.
    pub fn new(options: &Options) -> Self {
        let mut profile = Profile::named(options.word("as"));
        profile.form = match options.word("statements") {
            "single" => Statements::Single,
            "batched" => Statements::Batched,
            "procedure" => Statements::Procedure,
            _ => profile.form,
        };
        profile.sends_text |= options.switch("text");
        let layout = Layout {
            warehouses: options.count("warehouses"),
            sets: options.count("sets").max(1),
            foreign_keys: options.switch("foreign-keys"),
        };
        let waits = options.switch("wait");
        let terminals = waits.then(|| match options.count("terminals") {
            0 => layout.warehouses * layout.sets * super::DISTRICTS,
            terminals => terminals,
        });
        let delivery_connections = match (options.count("delivery-connections"), terminals) {
            (0, Some(terminals)) => terminals.div_ceil(TERMINALS_PER_DELIVERY_CONNECTION),
            (given, _) => given,
        };
        let is_roaming = options.word("home") == "roaming" && !waits;
        Self { profile, layout, is_roaming, terminals, delivery_connections }
    }

    /// All connections of terminals and deliveries.
    pub fn connections(&self) -> Option<usize> {
        self.terminals.map(|terminals| (terminals + self.delivery_connections) as usize)
    }
}

/// Refuses options that exclude each other.
///
/// # Errors
/// All contradictions.
pub fn check(options: &Options) -> Result<(), Vec<OptionError>> {
    let mut errors = Vec::new();
    let mut impossible = |is: bool, why: &str| {
        if is {
            errors.push(OptionError::Impossible(why.to_owned()));
        }
    };
    let other_engine = options.word(engine::OPTION.name) != "innodb";
    impossible(
        options.switch("foreign-keys") && other_engine,
        "--foreign-keys: only InnoDB keeps foreign keys: leave out --storage-engine",
    );
    impossible(
        options.count("terminals") > 0 && !options.switch("wait"),
        "--terminals: terminals are those of --wait; without it --connections says how many connections there are",
    );
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(given: &[(&str, &str)]) -> Options {
        let given: Vec<(String, String)> =
            given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Options::resolve("tpcc", OPTIONS, &given).unwrap()
    }

    #[test]
    fn a_warehouse_has_ten_terminals_and_500_share_a_connection_for_deliveries() {
        let chosen = |given: &[(&str, &str)]| {
            let chosen = Chosen::new(&options(given));
            (chosen.terminals, chosen.delivery_connections, chosen.connections(), chosen.is_roaming)
        };
        assert_eq!(chosen(&[]), (None, 0, None, true));
        assert_eq!(chosen(&[("wait", "on"), ("warehouses", "100")]), (Some(1_000), 2, Some(1_002), false));
        let given = [("wait", "on"), ("terminals", "7"), ("delivery-connections", "3")];
        assert_eq!(chosen(&given), (Some(7), 3, Some(10), false));
    }

    #[test]
    fn a_driver_brings_its_statements_unless_others_are_asked_for() {
        let form = |given: &[(&str, &str)]| {
            let profile = Chosen::new(&options(given)).profile;
            (profile.form.word(), profile.sends_text)
        };
        assert_eq!(form(&[]), ("single", false));
        assert_eq!(form(&[("text", "on")]), ("single", true));
        assert_eq!(form(&[("as", "hammerdb")]), ("procedure", false));
        assert_eq!(form(&[("as", "go-tpc"), ("statements", "single")]), ("single", false));
        assert_eq!(form(&[("as", "sysbench-tpcc")]), ("single", true));
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        assert!(check(&options(&[("foreign-keys", "on")])).is_ok());
        let given = [("foreign-keys", "on"), ("storage-engine", "myisam"), ("terminals", "5")];
        assert_eq!(check(&options(&given)).unwrap_err().len(), 2);
    }
}
