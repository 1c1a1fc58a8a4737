//! The twin of a bundled script: the same events without Lua, for the load engine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mydyno_workload::session::ParamType;
use mydyno_workload::{Statement, StatementSpec};

use super::super::log::Level;
use super::super::options::{CommandLine, Options};
use super::random::{Numbers, key_options};
use super::script::{Script, search_path};
use super::target::Target;

/// Patterns of the columns c and pad: a digit in the place of every `#`.
pub(super) const C: &[u8; 119] =
    b"###########-###########-###########-###########-###########-###########-###########-###########-###########-###########";
pub(super) const PAD: &[u8; 59] = b"###########-###########-###########-###########-###########";

/// Kinds of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Point,
    Simple,
    Sum,
    Order,
    Distinct,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
    Begin,
    Commit,
}

/// Number of the kinds.
const KINDS: usize = 11;
/// A text of C's and of PAD's length, and a whole number.
const INT: ParamType = ParamType::Int;
const C_TEXT: ParamType = ParamType::Fixed(C.len());
const PAD_TEXT: ParamType = ParamType::Fixed(PAD.len());

impl Kind {
    /// The statement with `{}` for the number of the table, and its parameters.
    fn text(self) -> (&'static str, &'static [ParamType]) {
        match self {
            Self::Point => ("SELECT c FROM sbtest{} WHERE id=?", &[INT]),
            Self::Simple => ("SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ?", &[INT, INT]),
            Self::Sum => ("SELECT SUM(k) FROM sbtest{} WHERE id BETWEEN ? AND ?", &[INT, INT]),
            Self::Order => ("SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c", &[INT, INT]),
            Self::Distinct => {
                ("SELECT DISTINCT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c", &[INT, INT])
            }
            Self::IndexUpdate => ("UPDATE sbtest{} SET k=k+1 WHERE id=?", &[INT]),
            Self::NonIndexUpdate => ("UPDATE sbtest{} SET c=? WHERE id=?", &[C_TEXT, INT]),
            Self::Delete => ("DELETE FROM sbtest{} WHERE id=?", &[INT]),
            Self::Insert => {
                ("INSERT INTO sbtest{} (id, k, c, pad) VALUES (?, ?, ?, ?)", &[INT, INT, C_TEXT, PAD_TEXT])
            }
            Self::Begin => ("BEGIN", &[]),
            Self::Commit => ("COMMIT", &[]),
        }
    }

    /// Whether the statement has a table.
    fn has_table(self) -> bool {
        !matches!(self, Self::Begin | Self::Commit)
    }

    /// Whether its answer has rows.
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::Point | Self::Simple | Self::Sum | Self::Order | Self::Distinct)
    }
}

/// A part of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// BEGIN or COMMIT.
    Plain(Kind),
    /// So many statements of a kind on one table.
    Repeat(Kind, u64),
    /// So many pairs of DELETE and INSERT of a row of one table.
    DeleteInserts(u64),
    /// A row of a table as text; with an id that the client chooses.
    InsertText { with_id: bool },
}

/// The statements of a bundled script's events, with the options of one command line.
#[derive(Debug)]
pub(super) struct Twin {
    pub(super) steps: Vec<Step>,
    /// Statements, in the order in which the script prepares them.
    pub(super) statements: Vec<StatementSpec>,
    /// First statement of each kind.
    first: [u32; KINDS],
    /// Statements are sent as texts.
    pub(super) as_texts: bool,
    /// Whether an event that starts again is rolled back.
    pub(super) rolls_back: bool,
    pub(super) tables: u64,
    pub(super) range_size: i64,
    pub(super) keys: Numbers,
    /// Path of the script in messages, and its name.
    pub(super) path: String,
    pub(super) module: &'static str,
    pub(super) unique: Arc<AtomicU64>,
}

impl Twin {
    /// The twin of a script that is about to run.
    ///
    /// # Errors
    /// Why the script runs in Lua: it is not bundled, or something is asked for that its twin cannot do.
    pub(super) fn of(
        script: &Script,
        options: &Options,
        target: &Target,
        unique: &Arc<AtomicU64>,
    ) -> Result<Self, &'static str> {
        let module = script.module.ok_or("the script is not a bundled one")?;
        let kinds_and_steps = plan(module, options).ok_or("the script has no twin")?;
        let tables = u64::try_from(options.int("tables")).ok().filter(|n| (1..=65_536).contains(n));
        let rows = u64::try_from(options.int("table-size")).ok().filter(|n| *n > 0);
        let (Some(tables), Some(rows)) = (tables, rows) else { return Err("there are no rows") };
        let sends = |step: &Step| !matches!(step, Step::Repeat(_, 0) | Step::DeleteInserts(0));
        let reason = [
            (!kinds_and_steps.1.iter().any(sends), "an event sends nothing"),
            (has_own_common(), "a file oltp_common.lua stands in the search path"),
            (
                options.text("db-driver").is_some_and(|driver| driver != "mysql"),
                "another driver is asked for",
            ),
            (target.dry_run, "nothing is to be sent"),
            (target.restarts_after_loss(), "a lost connection is to be opened again"),
            (has_rate(options), "a rate is asked for"),
            (
                options.is_on("debug") || Level::of(options.int("verbosity")) == Some(Level::Debug),
                "diagnostics are asked for",
            ),
        ];
        if let Some((_, reason)) = reason.into_iter().find(|(holds, _)| *holds) {
            return Err(reason);
        }
        let (kinds, steps) = kinds_and_steps;
        let (statements, first) = statements(&kinds, tables);
        Ok(Self {
            steps,
            statements,
            first,
            as_texts: !target.prepares,
            rolls_back: !options.is_on("skip-trx"),
            tables,
            range_size: options.int("range-size"),
            keys: Numbers::new(&key_options(options, options.text("rand-type").unwrap_or("special")), rows),
            path: script.path.clone().unwrap_or_default(),
            module,
            unique: Arc::clone(unique),
        })
    }

    /// The statement of a kind on a table, counted from 0.
    pub(super) fn statement(&self, kind: Kind, table: u64) -> Statement {
        Statement(self.first[kind as usize] + if kind.has_table() { table as u32 } else { 0 })
    }
}

/// Whether a command line asks for events of a bundled script that has a twin; options of the script may still rule it out.
pub(crate) fn may_have_twin(line: &CommandLine) -> bool {
    let options = &line.options;
    let module = line.test.as_deref().and_then(|word| word.rsplit('/').next());
    line.command.as_deref() == Some("run")
        && module.is_some_and(|module| plan(module, options).is_some())
        && options.text("mydyno-engine") != Some("lua")
        && !has_rate(options)
        && !options.is_on("mysql-dry-run")
}

/// Whether arrivals come at a rate.
fn has_rate(options: &Options) -> bool {
    ["rate", "tx-rate"].iter().any(|name| !matches!(options.text(name), None | Some("" | "0")))
}

/// Whether `require("oltp_common")` of a bundled script finds a file of the user's.
fn has_own_common() -> bool {
    search_path().iter().any(|pattern| Path::new(&pattern.replace('?', "oltp_common")).is_file())
}

fn statements(kinds: &[Kind], tables: u64) -> (Vec<StatementSpec>, [u32; KINDS]) {
    let (mut statements, mut first) = (Vec::new(), [0; KINDS]);
    for kind in kinds {
        first[*kind as usize] = statements.len() as u32;
        let (text, params) = kind.text();
        for table in 1..=if kind.has_table() { tables } else { 1 } {
            statements.push(StatementSpec {
                sql: text.replace("{}", &table.to_string()),
                params: params.to_vec(),
                ..StatementSpec::default()
            });
        }
    }
    (statements, first)
}

/// The statements that a bundled script prepares and the steps of its events, each in its order.
fn plan(module: &str, options: &Options) -> Option<(Vec<Kind>, Vec<Step>)> {
    use Kind::{
        Begin, Commit, Delete, Distinct, IndexUpdate, Insert, NonIndexUpdate, Order, Point, Simple, Sum,
    };
    let count = |name: &str| u64::try_from(options.int(name)).unwrap_or(0);
    let transactions: &[Kind] = if options.is_on("skip-trx") { &[] } else { &[Begin, Commit] };
    let ranges: &[Kind] = if options.is_on("range-selects") { &[Simple, Sum, Order, Distinct] } else { &[] };
    let writes = [IndexUpdate, NonIndexUpdate, Delete, Insert];
    let repeat = |kind| {
        Step::Repeat(
            kind,
            count(match kind {
                Simple => "simple-ranges",
                Sum => "sum-ranges",
                Order => "order-ranges",
                Distinct => "distinct-ranges",
                IndexUpdate => "index-updates",
                NonIndexUpdate => "non-index-updates",
                _ => "point-selects",
            }),
        )
    };
    let reading = || [Point].into_iter().chain(ranges.iter().copied()).map(repeat);
    let writing = || {
        let pairs = Step::DeleteInserts(count("delete-inserts"));
        [repeat(IndexUpdate), repeat(NonIndexUpdate), pairs].into_iter()
    };
    let in_transaction = |steps: Vec<Step>| match transactions {
        [] => steps,
        _ => [vec![Step::Plain(Begin)], steps, vec![Step::Plain(Commit)]].concat(),
    };
    Some(match module {
        "oltp_point_select" => (vec![Point], vec![Step::Repeat(Point, 1)]),
        "oltp_read_only" => ([&[Point], transactions, ranges].concat(), in_transaction(reading().collect())),
        "oltp_write_only" => ([transactions, &writes].concat(), in_transaction(writing().collect())),
        "oltp_read_write" => (
            [transactions, &[Point], ranges, &writes].concat(),
            in_transaction(reading().chain(writing()).collect()),
        ),
        "oltp_update_index" => (vec![IndexUpdate], vec![repeat(IndexUpdate)]),
        "oltp_update_non_index" => (vec![NonIndexUpdate], vec![repeat(NonIndexUpdate)]),
        "oltp_delete" => (vec![Delete], vec![Step::Repeat(Delete, 1)]),
        "oltp_insert" => (Vec::new(), vec![Step::InsertText { with_id: !options.is_on("auto-inc") }]),
        _ => return None,
    })
}
