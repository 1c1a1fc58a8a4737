//! `build_compare`: the statement classes with which a study of 2011 compared two builds of MySQL by different compilers.
//!
//! The study replayed the statements of a production system on InnoDB and MyISAM, one class at a time, with rising numbers
//! of clients. Its tables are not public: these have the sizes and key lengths of its printed plans, and the classes are
//! those that it describes. What it does not say (the share of rows that match, the rows behind two of the statements) is
//! chosen here.

mod tables;

use mydyno_model::record::{OperationInfo, OperationKind};
use mydyno_stats::rng::Rng;
use mydyno_tables::work_tables::WorkTables;

use crate::data::Purpose;
use crate::draws::Draws;
use crate::options::{Default, Form, OptionError, OptionSpec, Options};
use crate::registered::{Registered, Request, Spec};
use crate::session::{Fault, Session, StatementSpec, Workload};

/// Key of the tables in the mark.
pub const FAMILY: &str = "build_compare";

/// The name of the class that runs all others in their order.
pub const SCRIPT: &str = "script";

/// The classes of statements with their texts, in the order of the study's tables.
pub const CLASSES: [(&str, &str); 6] = [
    (
        "update-join",
        "UPDATE study_record r JOIN study_owner o ON o.code = r.owner_code \
         JOIN study_submission s ON s.submitter_id = o.account SET r.touched = 1 - r.touched WHERE s.state = 1",
    ),
    ("like-scan", "SELECT id, title FROM study_note WHERE title LIKE '%abc%' AND del_flag = 0"),
    (
        "update-derived",
        "UPDATE study_company c LEFT JOIN (SELECT a.company_id, COUNT(DISTINCT s.item) AS items FROM study_submission s \
         JOIN study_account a ON a.id = s.submitter_id GROUP BY a.company_id) d ON d.company_id = c.id \
         SET c.items = COALESCE(d.items, 0)",
    ),
    (
        "union-like",
        "SELECT id, name FROM study_record WHERE name LIKE '%.cn' AND kind = 1 \
         UNION SELECT id, name FROM study_record WHERE name LIKE '%.cn' AND kind = 2 \
         UNION SELECT id, name FROM study_record WHERE name LIKE '%.cn' AND kind = 3 \
         UNION SELECT id, name FROM study_record WHERE name LIKE '%.cn' AND kind = 4",
    ),
    ("count-like", "SELECT COUNT(*) FROM study_account WHERE site LIKE '%.cn'"),
    (
        "order-limit",
        "SELECT r.id, r.name, o.account FROM study_record r LEFT JOIN study_owner o ON o.code = r.owner_code \
         ORDER BY r.id DESC LIMIT 1170, 15",
    ),
];

/// Options.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "class",
        form: Form::Choice(&[
            SCRIPT,
            "update-join",
            "like-scan",
            "update-derived",
            "union-like",
            "count-like",
            "order-limit",
        ]),
        default: Default::Word(SCRIPT),
        help: "the class of statements; script is one of each, in their order",
    },
    OptionSpec {
        name: "scale",
        form: Form::Count { min: 1, max: 100 },
        default: Default::Count(1),
        help: "rows of the tables in percent of the study's, which has 1,157,224 in the largest",
    },
    crate::engine::OPTION,
];

/// The workload with its options.
#[derive(Debug, Clone)]
pub struct BuildCompare {
    operations: Vec<OperationInfo>,
    /// Numbers of the operations that a transaction sends.
    sent: Vec<usize>,
    seed: u64,
}

/// The transactions of one connection. They draw nothing: every transaction is the same.
pub type Stream = Draws<Rng>;

impl BuildCompare {
    /// The workload with these options.
    pub fn new(options: &Options, seed: u64) -> Self {
        let class = options.word("class");
        let chosen = CLASSES.iter().filter(|(name, _)| class == SCRIPT || *name == class);
        let operation =
            |name: &str, kind, sql: &str| OperationInfo { name: name.to_owned(), kind, sql: sql.to_owned() };
        // A transaction of one statement is recorded once, as the transaction.
        let kind = if class == SCRIPT { OperationKind::Statement } else { OperationKind::Transaction };
        let whole = operation("transaction", OperationKind::Transaction, "");
        let operations: Vec<OperationInfo> = (class == SCRIPT)
            .then_some(whole)
            .into_iter()
            .chain(chosen.map(|(name, sql)| operation(name, kind, sql)))
            .collect();
        let sent = (0..operations.len()).filter(|number| !operations[*number].sql.is_empty()).collect();
        Self { operations, sent, seed }
    }
}

/// Entries in the catalogue.
const SPECS: &[Spec] = &[Spec {
    name: "build_compare",
    summary: "statement classes of a study of compilers, on tables of its sizes: builds of a server",
    transaction: "1 statement of a class: an UPDATE over a join or a derived table, a scan, a UNION, an ordered page; or one of each",
    options: OPTIONS,
    example: "--sandbox --class union-like --storage-engine myisam --scale 5 --connections 1,10 --time 10s",
}];

impl Registered for BuildCompare {
    const SPECS: &'static [Spec] = SPECS;

    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
        let Request { options, database, seed, .. } = *request;
        let engine = options.word(crate::engine::OPTION.name);
        let tables = tables::tables(database, engine, options.count("scale"), seed);
        Ok((Self::new(options, seed), WorkTables::Own(tables)))
    }
}

impl Workload for BuildCompare {
    type Stream = Stream;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &[]
    }

    fn stream(&self, connection: u64) -> Stream {
        Draws::new(Rng::stream(self.seed, &[Purpose::Operations as u64, connection]))
    }

    fn transactional(&self) -> bool {
        false
    }

    fn writes(&self) -> bool {
        self.operations.iter().any(|operation| operation.sql.starts_with("UPDATE"))
    }

    async fn transaction<S: Session>(&self, _: &mut Stream, session: &mut S) -> Result<(), Fault> {
        for number in &self.sent {
            session.query(*number, self.operations[*number].sql.as_bytes()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(given: &[(&str, &str)]) -> BuildCompare {
        let given: Vec<(String, String)> =
            given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        BuildCompare::new(&Options::resolve("build_compare", OPTIONS, &given).unwrap(), 1)
    }

    #[test]
    fn a_class_is_one_statement_and_the_script_is_one_of_each() {
        for (name, sql) in CLASSES {
            let class = workload(&[("class", name)]);
            assert_eq!((class.operations[0].name.as_str(), class.operations[0].sql.as_str()), (name, sql));
            assert_eq!((class.sent.clone(), class.writes()), (vec![0], name.starts_with("update")));
        }
        let script = workload(&[]);
        assert_eq!(script.sent, [1, 2, 3, 4, 5, 6]);
        assert!(script.writes() && script.operations[0].sql.is_empty());
    }

    #[test]
    fn every_class_can_be_chosen() {
        let Form::Choice(words) = OPTIONS[0].form else { panic!("class") };
        let classes: Vec<&str> = CLASSES.iter().map(|(name, _)| *name).collect();
        assert_eq!((words[0], &words[1..]), (SCRIPT, classes.as_slice()));
    }

    #[test]
    fn the_tables_have_the_sizes_of_the_study() {
        let of = |percent: u64| {
            let tables = tables::tables("d", "MyISAM", percent, 1).tables;
            tables.iter().map(|table| table.rows).collect::<Vec<_>>()
        };
        assert_eq!(of(100), [1_157_224, 22_663, 362_615, 22_663, 4_386, 1_589]);
        assert_eq!(of(1), [11_572, 226, 3_626, 226, 43, 15]);
    }

    #[test]
    fn the_first_operations_stay_what_they_are() {
        crate::golden::same("build_compare.txt", &crate::golden::stream(&workload(&[]), 2));
    }
}
