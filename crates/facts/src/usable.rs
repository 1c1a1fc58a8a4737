//! Whether the server answered anything from which facts can be taken.

use mydyno_model::facts::{FactSet, Status};

use crate::context::NO_CONNECTION;

/// Why a set holds no usable fact of the server that was queried; `None` if it does, and when only a host was examined.
///
/// Every server answers SELECT VERSION() and SHOW GLOBAL VARIABLES, which need no privilege. Without both, no claim
/// about a server can be judged, and an audit that continued would look as if nothing was wrong.
pub fn server_unusable(facts: &FactSet) -> Option<String> {
    let why = |id: &str| match &facts.facts.get(id)?.status {
        Status::Ok => None,
        Status::Absent { why } if why == NO_CONNECTION => None,
        // A server may have no version_comment.
        Status::Absent { .. } if id == "server.version_comment" => None,
        Status::Denied { why } | Status::Error { why } | Status::Absent { why } => Some(why.as_str()),
    };
    // A server that stopped half-way has answered some statements: those answers count, and the rest is unknown.
    let answered = facts.facts.iter().any(|(id, fact)| {
        (id.starts_with("server.status.") || id.starts_with("server.variable.")) && fact.status == Status::Ok
    });
    if answered {
        return None;
    }
    let reported =
        ["server.version", "server.version_number", "server.version_comment"].into_iter().find_map(why)?;
    Some(match why("server.variable.version") {
        Some(variables) if variables != reported => format!("{reported}; {variables}"),
        _ => reported.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Source, Sql, SqlError, Table, collect_with};
    use std::time::Duration;

    /// Answers every statement in the same way.
    struct Always(Result<Table, SqlError>);

    impl Sql for Always {
        fn table(&mut self, _: &str, _: Option<Duration>) -> Result<Table, SqlError> {
            self.0.clone()
        }
    }

    fn look(sql: Option<&mut dyn Sql>) -> FactSet {
        let folder = tempfile::tempdir().unwrap();
        collect_with(&Source::at(folder.path()), sql, None, &Options::default())
    }

    #[test]
    fn a_server_that_drops_refuses_or_garbles_every_statement_is_of_no_use() {
        let cell = |text: &str| vec![Some(text.to_owned())];
        let rows = |rows| Ok(Table { columns: vec!["x".to_owned()], rows });
        for (answer, expected) in [
            (
                Err(SqlError::Connection("the server closed the connection".to_owned())),
                "closed the connection",
            ),
            (Err(SqlError::Refused { code: 1105, message: "no".to_owned() }), "error 1105: no"),
            (Err(SqlError::Refused { code: 1064, message: "no".to_owned() }), "error 1064"),
            (rows(vec![]), "gave no value"),
            (rows(vec![vec![None]]), "gave no value"),
            (rows(vec![cell("\u{1b}[2Jgarbage")]), "does not begin like 8.0.36"),
            (rows(vec![cell("8.0.36")]), "variables could not be read"),
        ] {
            let why = server_unusable(&look(Some(&mut Always(answer)))).unwrap();
            assert!(why.contains(expected), "{why:?}");
        }
    }

    #[test]
    fn a_look_at_the_host_alone_and_facts_that_were_read_are_of_use() {
        assert_eq!(server_unusable(&look(None)), None);
        let mut facts = look(None);
        facts.facts.clear();
        assert_eq!(server_unusable(&facts), None);
    }

    #[test]
    fn a_message_of_31_mib_is_kept_once_and_short() {
        let message = "\u{1F600}".repeat((31 << 20) / 4);
        let facts = look(Some(&mut Always(Err(SqlError::Refused { code: 1105, message }))));
        let longest = facts.facts.values().map(|fact| match &fact.status {
            Status::Ok => 0,
            Status::Denied { why } | Status::Absent { why } | Status::Error { why } => why.len(),
        });
        let longest = longest.max().unwrap();
        assert!(longest > 1000 && longest < 2000, "{longest}");
    }
}
