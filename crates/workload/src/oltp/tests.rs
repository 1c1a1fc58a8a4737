//! Statements and transactions of the workloads.

use super::*;
use crate::transcript::replay;

fn oltp(mix: Mix, given: &[(&str, &str)]) -> Oltp {
    let given: Vec<(String, String)> =
        given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    Oltp::new(mix, &Options::resolve("oltp", OPTIONS, &given).unwrap(), 1).unwrap()
}

fn kinds(oltp: &Oltp) -> Vec<String> {
    let mut names = Vec::new();
    replay(oltp, 0, 1, &mut |asked| names.push(oltp.operations()[asked.operation].name.clone()));
    names
}

#[test]
fn a_read_write_transaction_is_the_twenty_statements_of_the_classic_mix() {
    let mut expected = vec!["begin"];
    expected.extend(["point_select"; 10]);
    expected.extend(["simple_range", "sum_range", "order_range", "distinct_range"]);
    expected.extend(["index_update", "non_index_update", "delete", "insert", "commit"]);
    assert_eq!(kinds(&oltp(Mix::ReadWrite, &[])), expected);
}

#[test]
fn counts_and_switches_shape_the_transaction() {
    let read = oltp(Mix::ReadOnly, &[("point-selects", "2"), ("range-selects", "off"), ("skip-trx", "on")]);
    assert_eq!(kinds(&read), ["point_select", "point_select"]);
    assert_eq!(kinds(&oltp(Mix::WriteOnly, &[])).len(), 6);
    assert_eq!(kinds(&oltp(Mix::ReadOnly, &[])).len(), 16);
}

#[test]
fn a_single_statement_is_recorded_once_as_the_transaction() {
    let point = oltp(Mix::PointSelect, &[]);
    assert_eq!(point.operations().len(), 1);
    assert_eq!(point.operations()[0].kind, OperationKind::Transaction);
    assert_eq!(point.operations()[0].sql, "SELECT c FROM sbtest1 WHERE id=?");
    assert!(!point.transactional() && !point.writes());
}

#[test]
fn single_statement_workloads_ask_without_begin() {
    assert_eq!(kinds(&oltp(Mix::Delete, &[("delete-inserts", "3")])), ["delete"]);
    assert_eq!(kinds(&oltp(Mix::UpdateIndex, &[("index-updates", "2")])), ["index_update"; 2]);
    assert_eq!(kinds(&oltp(Mix::UpdateNonIndex, &[])), ["non_index_update"]);
    assert!(!oltp(Mix::Delete, &[]).keeps_row_count() && oltp(Mix::ReadWrite, &[]).keeps_row_count());
}

#[test]
fn an_engine_without_transactions_has_nothing_to_roll_back() {
    assert!(oltp(Mix::ReadWrite, &[]).transactional());
    let myisam = oltp(Mix::ReadWrite, &[("storage-engine", "myisam")]);
    assert!(!myisam.transactional());
    // The statements stay those of the original.
    assert_eq!(kinds(&myisam).len(), 20);
}

#[test]
fn each_table_has_its_statements() {
    let point = oltp(Mix::PointSelect, &[("tables", "3")]);
    let texts: Vec<&str> = point.statements().iter().map(|s| s.sql.as_str()).collect();
    assert_eq!(
        texts,
        [
            "SELECT c FROM sbtest1 WHERE id=?",
            "SELECT c FROM sbtest2 WHERE id=?",
            "SELECT c FROM sbtest3 WHERE id=?"
        ]
    );
}

#[test]
fn an_empty_transaction_is_refused() {
    let given =
        [("point-selects".to_owned(), "0".to_owned()), ("range-selects".to_owned(), "off".to_owned())];
    let options = Options::resolve("w", OPTIONS, &given).unwrap();
    let errors = Oltp::new(Mix::ReadOnly, &options, 1).unwrap_err();
    assert!(errors[0].to_string().contains("the transaction is empty"));
}
