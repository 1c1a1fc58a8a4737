//! The latest deadlock, as InnoDB's monitor tells it: its tables, and who ran what. No value of a statement is kept.

use serde_json::{Value, json};

use crate::collectors::session_list::verb_and_table;

/// The line above the section.
const SECTION: &str = "\nLATEST DETECTED DEADLOCK\n";

/// The line above the section behind it.
const NEXT: &str = "\nTRANSACTIONS\n";

/// Transactions that are named: a circle of more is rare.
const PARTIES: usize = 4;

/// Bytes of a statement that are looked at: the table stands at its beginning.
const LOOKED_AT: usize = 2000;

/// The section on the latest deadlock; empty where there was none.
fn section(status: &str) -> &str {
    let Some((_, rest)) = status.split_once(SECTION) else { return "" };
    rest.split_once(NEXT).map_or(rest, |(section, _)| section)
}

/// The tables whose rows were locked, each once.
pub(super) fn tables(status: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in section(status).lines().filter(|line| line.starts_with("RECORD LOCKS")) {
        let Some((_, rest)) = line.split_once(" of table ") else { continue };
        let name = rest.split([' ', '\t']).next().unwrap_or_default().replace('`', "");
        if !name.is_empty() && !found.contains(&name) {
            found.push(name);
        }
    }
    found.truncate(5);
    found
}

/// The transactions, with the user and the statement that was to wait: its verb and its table.
pub(super) fn parties(status: &str) -> Vec<Value> {
    let lines: Vec<&str> = section(status).lines().collect();
    let mut found = Vec::new();
    // Of each transaction the first such line: a statement may hold others.
    let mut told = false;
    for (at, line) in lines.iter().enumerate() {
        told &= !(line.starts_with("*** (") && line.contains("TRANSACTION"));
        let heading =
            ["MySQL thread id ", "MariaDB thread id "].iter().find_map(|start| line.strip_prefix(start));
        let Some(rest) = heading.filter(|rest| !told && rest.contains(", query id ")) else { continue };
        told = true;
        let words = rest.split_once(", query id ").map_or("", |(_, words)| words);
        let of_statement = lines[at + 1..].iter().take_while(|line| !is_heading(line));
        let mut statement = of_statement.copied().collect::<Vec<&str>>().join(" ");
        let end = (0..=LOOKED_AT.min(statement.len())).rev().find(|end| statement.is_char_boundary(*end));
        statement.truncate(end.unwrap_or(0));
        found.push(json!({"user": user(words), "statement": verb_and_table(statement.trim())}));
    }
    found.truncate(PARTIES);
    found
}

/// Whether a line of the monitor's own stands behind a statement.
fn is_heading(line: &str) -> bool {
    line.starts_with("*** ") || line.starts_with("RECORD LOCKS") || line.starts_with("TABLE LOCK")
}

/// The user in `NUMBER HOST ADDRESS USER STATE`, where one of host and address can be left out.
fn user(words: &str) -> String {
    let words: Vec<&str> = words.split_ascii_whitespace().skip(1).collect();
    let is_address = |word: &&str| word.parse::<std::net::IpAddr>().is_ok();
    let at = if words.get(1).is_some_and(is_address) { 2 } else { 1 };
    words.get(at).copied().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "x\n------------------------\nLATEST DETECTED DEADLOCK\n------------------------\n2026-03-01 10:00:00 0x7f\n*** (1) TRANSACTION:\nTRANSACTION 18, ACTIVE 4 sec starting index read\nLOCK WAIT 3 lock struct(s)\nMySQL thread id 9, OS thread handle 1, query id 31 web01 10.0.0.5 checkout updating\nUPDATE `webshop`.`stock` SET note = 'from Ada'\nWHERE id = 7\n\n*** (1) HOLDS THE LOCK(S):\nRECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table `webshop`.`stock` trx id 18 lock_mode X\n*** (2) TRANSACTION:\nMariaDB thread id 10, OS thread handle 1, query id 32 localhost erp_sync Updating\nDELETE FROM stock WHERE note = 'Ada'\n*** (2) WAITING FOR THIS LOCK TO BE GRANTED:\nRECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table `webshop`.`stock` trx id 19 lock_mode X\n*** WE ROLL BACK TRANSACTION (2)\n------------\nTRANSACTIONS\n------------\nMySQL thread id 99, OS thread handle 1, query id 33 localhost other\nSELECT 1 FROM z\n";

    #[test]
    fn a_deadlock_is_told_by_its_tables_users_and_verbs() {
        assert_eq!(tables(STATUS), ["webshop.stock"]);
        assert_eq!(
            parties(STATUS),
            [
                json!({"user": "checkout", "statement": "UPDATE of webshop.stock"}),
                json!({"user": "erp_sync", "statement": "DELETE of stock"}),
            ]
        );
    }

    #[test]
    fn a_status_without_a_deadlock_tells_none() {
        assert!(tables("a\nTRANSACTIONS\n").is_empty() && parties("a\nTRANSACTIONS\n").is_empty());
    }

    #[test]
    fn the_user_stands_behind_host_and_address() {
        assert_eq!(user("31 10.0.0.5 app Sending data"), "app");
        assert_eq!(user("31 localhost 127.0.0.1 app"), "app");
        assert_eq!(user("31"), "");
    }
}
