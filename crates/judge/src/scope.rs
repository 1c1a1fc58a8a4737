//! Which facts were accessible, and which host they describe.

use mydyno_model::facts::{FactSet, Status};
use mydyno_model::finding::Scope;
use serde_json::Value;

/// Facts about a host, as opposed to the server.
fn is_of_host(id: &str) -> bool {
    ["host.", "block.", "storage.", "client.", "server.process.", "server.cgroup."]
        .iter()
        .any(|p| id.starts_with(p))
}

/// Removes the facts about the host when the server runs elsewhere: they describe the host that mydyno runs on, not the
/// server's. They stay in the set as unread, so that claims about them are undecided, never fulfilled.
pub fn hide_host(facts: &mut FactSet, why: &str) {
    for (_, fact) in facts.facts.iter_mut().filter(|(id, _)| is_of_host(id)) {
        fact.value = Value::Null;
        fact.unit.clear();
        // Not `absent`: the server's host has these things; they are only not visible.
        fact.status = Status::Error { why: why.to_owned() };
    }
    facts.extra.insert("host_not_visible".to_owned(), Value::from(why));
}

/// The accessible facts.
pub fn scope(facts: &FactSet) -> Scope {
    let mut notes = Vec::new();
    let hidden = facts.extra.get("host_not_visible").and_then(Value::as_str);
    let server = match (facts.text("server.family"), facts.text("server.version")) {
        (Some(family), Some(version)) => format!("{family} {version}"),
        _ => {
            notes.push("No server was given: claims about a server are unknown.".to_owned());
            String::new()
        }
    };
    let host = match (hidden, facts.text("host.scope")) {
        (Some(why), _) => {
            notes.push(format!("The server's host is not visible: {why}. Nothing is said about it."));
            "not_visible".to_owned()
        }
        (None, Some(scope)) => scope.to_owned(),
        (None, None) => {
            notes.push("The kind of this host is unknown.".to_owned());
            "not_visible".to_owned()
        }
    };
    let server_process = facts.number("server.process.pid").is_some();
    if !server.is_empty() && !server_process && hidden.is_none() {
        notes.push(
            "The server's process was not found on this host: nothing is said about its limits, memory and storage."
                .to_owned(),
        );
    }
    if host == "container" {
        notes.push(
            "This is a container: limits and files are its own, kernel settings and disks those of the host below."
                .to_owned(),
        );
    }
    notes.extend(of_tables(facts));
    let text = |id: &str| facts.text(id).filter(|text| !text.is_empty()).map(str::to_owned);
    let whole = |id: &str| facts.number(id).filter(|n| *n >= 0.0).map(|n| n as u64);
    Scope {
        server,
        host,
        server_process,
        notes,
        host_name: text("server.variable.hostname"),
        port: whole("server.variable.port").filter(|port| *port > 0),
        socket: text("server.variable.socket"),
        data_directory: text("server.variable.datadir"),
        uptime_s: whole("server.uptime_s"),
    }
}

/// How many of the tables were read, where some were not.
fn of_tables(facts: &FactSet) -> Option<String> {
    let all = facts.facts.get("schema.all_read")?;
    let whole = |id: &str| facts.number(id).map(|n| n as u64);
    match &all.status {
        Status::Error { why } | Status::Denied { why } => {
            let many = matches!(all.status, Status::Error { .. })
                && whole("schema.tables").is_some_and(|tables| tables > 5000);
            let more = if many { " More time reads more of them: --tables-within 5min." } else { "" };
            Some(format!(
                "Claims on tables, columns and indexes are unknown where nothing was found: {why}.{more}"
            ))
        }
        Status::Ok => {
            let (unread, tables) = (whole("schema.unread")?, whole("schema.tables")?);
            (unread > 0).then(|| {
                format!(
                    "{} of {tables} tables were read, the largest first; claims on tables judge these.",
                    tables.saturating_sub(unread)
                )
            })
        }
        Status::Absent { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_model::Header;
    use mydyno_model::facts::Fact;
    use time::OffsetDateTime;

    fn set() -> FactSet {
        let facts = [
            ("server.family", "mysql"),
            ("server.version", "8.4.3"),
            ("host.scope", "vm"),
            ("block.sda.scheduler", "none"),
        ];
        FactSet {
            header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH),
            facts: facts.iter().map(|(id, v)| ((*id).to_owned(), Fact::ok(*v, "", "t"))).collect(),
            extra: serde_json::Map::new(),
        }
    }

    #[test]
    fn a_host_that_is_not_the_server_s_is_not_visible() {
        let mut facts = set();
        assert_eq!(scope(&facts).host, "vm");
        hide_host(&mut facts, "it is reached over the network");
        assert_eq!(facts.value("block.sda.scheduler"), None);
        let seen = scope(&facts);
        assert_eq!((seen.host.as_str(), seen.server.as_str()), ("not_visible", "mysql 8.4.3"));
        assert!(seen.notes.iter().any(|n| n.contains("over the network")), "{:?}", seen.notes);
    }

    #[test]
    fn tables_that_were_not_read_are_told() {
        let mut facts = set();
        assert!(scope(&facts).notes.iter().all(|note| !note.contains("tables")));
        for (id, value) in [("schema.tables", 1006), ("schema.unread", 5)] {
            facts.facts.insert(id.to_owned(), Fact::ok(value, "count", "t"));
        }
        facts.facts.insert("schema.all_read".to_owned(), Fact::ok(true, "", "t"));
        let notes = scope(&facts).notes;
        assert!(notes.iter().any(|note| note.starts_with("1001 of 1006 tables were read")), "{notes:?}");
        let why = "512 of 20000 tables were read".to_owned();
        facts.facts.insert("schema.all_read".to_owned(), Fact::missing(Status::Error { why }, "t"));
        assert!(scope(&facts).notes.iter().any(|note| note.contains("512 of 20000")));
    }

    #[test]
    fn a_look_without_a_server_says_so() {
        let mut facts = set();
        facts.facts.shift_remove("server.family");
        assert!(scope(&facts).notes[0].contains("No server"));
    }
}
