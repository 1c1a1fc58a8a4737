//! Accounts that the error log names: whose logins were refused, and whose connections ended without a goodbye; and replicas that
//! began to read the binary log.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};
use time::{Duration, OffsetDateTime, PrimitiveDateTime};

use super::error_log::instant;

/// Kinds of lines that name an account, or the number of a replica.
pub(super) const KINDS: [&str; 3] = ["refused", "aborted", "dumps"];

/// Accounts of a kind that are told.
const TOLD: usize = 5;

/// Most accounts that are counted: the names come from whoever tries to log in.
const COUNTED: usize = 10_000;

/// Lines of one account.
#[derive(Default)]
struct Lines {
    at: Vec<Option<PrimitiveDateTime>>,
}

/// The accounts of each kind, the most frequent first.
pub(super) fn read(log: &str, now: OffsetDateTime) -> [(&'static str, Vec<Value>); KINDS.len()] {
    let mut denied: HashMap<String, Lines> = HashMap::new();
    let mut aborted: HashMap<String, Lines> = HashMap::new();
    let mut dumps: HashMap<String, Lines> = HashMap::new();
    let mut at = None;
    for line in log.lines() {
        at = instant(line).or(at);
        let (accounts, account) = match (denied_account(line), aborted_account(line), replica(line)) {
            (Some(account), ..) => (&mut denied, account),
            (_, Some(account), _) => (&mut aborted, account),
            (.., Some(number)) => (&mut dumps, number),
            _ => continue,
        };
        if accounts.len() < COUNTED || accounts.contains_key(&account) {
            accounts.entry(account).or_default().at.push(at);
        }
    }
    [(KINDS[0], told(denied, now)), (KINDS[1], told(aborted, now)), (KINDS[2], told(dumps, now))]
}

/// The most frequent of the accounts.
fn told(accounts: HashMap<String, Lines>, now: OffsetDateTime) -> Vec<Value> {
    let last = accounts.values().flat_map(|lines| lines.at.iter().flatten()).max().copied();
    let mut all: Vec<(String, Lines)> = accounts.into_iter().collect();
    all.sort_by(|(a, m), (b, n)| n.at.len().cmp(&m.at.len()).then_with(|| a.cmp(b)));
    let within = |at: &PrimitiveDateTime| last.is_some_and(|last| last - *at <= Duration::HOUR);
    let one = |(account, lines): (String, Lines)| {
        let recent = lines.at.iter().flatten().filter(|at| within(at)).count();
        let age = lines
            .at
            .iter()
            .flatten()
            .max()
            .map(|at| (now - at.assume_utc()).as_seconds_f64().max(0.0).round());
        json!({"account": account, "count": lines.at.len(), "last_hour": recent, "last_age_s": age})
    };
    all.into_iter().take(TOLD).map(one).collect()
}

/// Takes out the names of users that are none and were refused once or twice: somebody may have typed a password in their place.
pub(super) fn without_strangers(told: &mut [Value], accounts: &BTreeSet<String>) {
    let user = |account: &str| account.rsplit_once('@').map(|(user, _)| user.to_owned());
    let known: BTreeSet<String> = accounts.iter().filter_map(|account| user(account)).collect();
    for entry in told.iter_mut().filter(|entry| entry["count"].as_u64().unwrap_or(0) < 3) {
        let account = entry["account"].as_str().unwrap_or_default().to_owned();
        let Some((name, host)) = account.rsplit_once('@') else { continue };
        if !known.contains(name) {
            entry["account"] = format!("an unknown user@{host}").into();
        }
    }
}

/// As in `Access denied for user 'app'@'10.0.0.7' (using password: YES)`.
fn denied_account(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("Access denied for user '")?;
    let (user, rest) = rest.split_once("'@'")?;
    let (host, _) = rest.split_once('\'')?;
    Some(format!("{user}@{host}"))
}

/// As in `Aborted connection 7 to db: 'shop' user: 'app' host: '10.0.0.7' (Got an error reading communication packets)`.
fn aborted_account(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("Aborted connection ")?;
    let (_, rest) = rest.split_once(" user: '")?;
    let (user, rest) = rest.split_once("' host: '")?;
    let (host, _) = rest.split_once('\'')?;
    (user != "unauthenticated" && user != "unconnected").then(|| format!("{user}@{host}"))
}

/// The number of a replica, as in `Start binlog_dump to slave_server(2), pos(binlog.000007, 4)`; MySQL 8.0.26 and later say
/// `replica_server(2)`.
fn replica(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("Start binlog_dump")?;
    let (_, rest) = rest.split_once("slave_server(").or_else(|| rest.split_once("replica_server("))?;
    let (number, _) = rest.split_once(')')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    const LOG: &str = "\
2026-11-20 10:00:00 7 [Warning] Access denied for user 'zbx'@'10.0.0.9' (using password: YES)
2026-11-20 12:00:00 8 [Warning] Access denied for user 'zbx'@'10.0.0.9' (using password: YES)
2026-11-20T12:30:00.123456Z 9 [Note] [MY-010926] [Server] Access denied for user 'bi'@'localhost' (using password: NO)
2026-11-20 12:31:00 9 [Warning] Aborted connection 9 to db: 'shop' user: 'app' host: '10.0.0.7' (Got timeout reading communication packets)
2026-11-20 12:31:00 10 [Warning] Aborted connection 10 to db: 'unconnected' user: 'unauthenticated' host: '10.0.0.8' (This connection closed normally without authentication)
2026-11-20 12:30:40 11 [Note] Start binlog_dump to slave_server(2), pos(binlog.000007, 4), using_gtid(0), gtid('')
2026-11-20T12:30:50.123456Z 12 [Note] [MY-010462] [Repl] Start binlog_dump to source_thread_id(12) replica_server(2), pos(, 4)
";

    #[test]
    fn accounts_are_counted_with_those_of_the_last_hour() {
        let [(_, denied), (_, aborted), (_, dumps)] = read(LOG, datetime!(2026-11-20 12:31:00 UTC));
        assert_eq!(
            denied,
            [
                json!({"account": "zbx@10.0.0.9", "count": 2, "last_hour": 1, "last_age_s": 1860.0}),
                json!({"account": "bi@localhost", "count": 1, "last_hour": 1, "last_age_s": 60.0}),
            ]
        );
        assert_eq!(aborted.len(), 1);
        assert_eq!(aborted[0]["account"], "app@10.0.0.7");
        let expected = json!({"account": "2", "count": 2, "last_hour": 2, "last_age_s": 10.0});
        assert_eq!(dumps, [expected]);
    }

    #[test]
    fn a_name_that_is_no_user_s_and_was_refused_once_is_not_kept() {
        let mut told = [("geheim@h", 2), ("root@h", 1), ("scanner@h", 3)]
            .map(|(account, count)| json!({"account": account, "count": count}));
        without_strangers(&mut told, &["root@localhost".to_owned()].into());
        assert_eq!(told.map(|entry| entry["account"].clone()), ["an unknown user@h", "root@h", "scanner@h"]);
    }

    #[test]
    fn lines_that_are_cut_name_no_account() {
        for line in
            ["Access denied for user 'zbx'@'10", "Access denied for user ''@", "Aborted connection 9 to"]
        {
            assert_eq!((denied_account(line), aborted_account(line)), (None, None), "{line}");
        }
    }
}
