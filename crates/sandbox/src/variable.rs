//! Variables of private servers, changed while they run and restored.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::Duration;

use mydyno_host::Change;
use mydyno_host::journal::Closing;
use mydyno_host::machine::Presence;
use mydyno_host::restore::{Hooks, Outcome};
use mydyno_host::variable::ChangedVariable;
use mydyno_model::server::ServerInfo;
use mydyno_wire::{Client, ConnectOptions};

use crate::connect::connect_options;
use crate::data;
use crate::error::SandboxError;
use crate::folder::{Description, ServerFolder};
use crate::settings::Setting;
use crate::site::Site;
use crate::users_server;

/// Time limit of a statement while the journal is locked: other commands wait ten seconds for the lock.
const ASKED_UNDER_THE_LOCK: Duration = Duration::from_secs(3);

/// Pairs of variables of which a server adjusts one to the other: `innodb_io_capacity_max` is never below
/// `innodb_io_capacity`, the low-water mark never above the mark.
const NEIGHBOURS: [[&str; 2]; 2] = [
    ["innodb_io_capacity", "innodb_io_capacity_max"],
    ["innodb_max_dirty_pages_pct", "innodb_max_dirty_pages_pct_lwm"],
];

pub(crate) fn neighbours(name: &str) -> impl Iterator<Item = &'static str> {
    let of = NEIGHBOURS.iter().filter(move |pair| pair.iter().any(|n| n.eq_ignore_ascii_case(name)));
    of.flatten().copied().filter(move |n| !n.eq_ignore_ascii_case(name))
}

/// The global value of a variable, as the server shows it.
///
/// # Errors
/// The server cannot be reached, or has no such variable.
pub fn read(server: &ServerInfo, name: &str) -> Result<String, SandboxError> {
    check_name(name)?;
    show(&mut connect(server)?, name)
}

/// Sets a global variable of a running private server: writes the journal entry, then the value, then reads it back.
/// Returns the number of the journal entry; `None` when the variable has the value already.
///
/// # Errors
/// The server refuses it, or adjusts the value; the variable then has its previous value again.
pub fn set(
    site: &Site,
    server: &ServerInfo,
    purpose: &str,
    name: &str,
    value: &str,
) -> Result<Option<u64>, SandboxError> {
    check_name(name)?;
    let folder = ServerFolder::of(site.state, &server.name);
    let process = match folder.load()? {
        Some(Description { process, .. }) => process,
        None => return Err(SandboxError::NoSuchServer { name: server.name.clone(), known: vec![] }),
    };
    if site.lease.machine().presence(&process)? != Presence::Running {
        return Err(SandboxError::NoSuchServer { name: server.name.clone(), known: vec![] });
    }
    let (mut client, mut asked) = (connect(server)?, connect_briefly(server)?);
    let mut changed = ChangedVariable {
        process,
        folder: folder.path().to_owned(),
        name: name.to_owned(),
        was: String::new(),
        now: plain(value),
        along: vec![],
    };
    // The value before the change is read once no other command holds the variable.
    let key = changed.key();
    let mut refused = None;
    let recorded =
        site.journal.record_if_needed::<SandboxError>(site.lease, purpose, &key, || {
            match show(&mut asked, name) {
                Ok(was) if same(&was, &changed.now) => Ok(None),
                Ok(was) => {
                    changed.was = was;
                    let value = |n: &str| Some((n.to_owned(), show(&mut asked, n).ok()?));
                    changed.along = neighbours(name).filter_map(value).collect();
                    Ok(Some(Box::new(changed.clone()) as Box<dyn Change>))
                }
                Err(error) => {
                    refused = Some(error);
                    Ok(None)
                }
            }
        })?;
    drop(asked);
    if let Some(error) = refused {
        return Err(error);
    }
    let Some(id) = recorded else { return Ok(None) };
    let ChangedVariable { was, now, along, .. } = &changed;
    write_recorded(site, &mut client, id, &Swapped { name, was, now, along }).map(|()| Some(id))
}

/// Sets a variable whose change is in the journal as the entry `id`. A value that the server refuses or rounds is
/// undone, and its entry closed.
pub(crate) fn write_recorded(
    site: &Site,
    client: &mut Client,
    id: u64,
    swapped: &Swapped<'_>,
) -> Result<(), SandboxError> {
    let Swapped { name, was, now, along } = *swapped;
    let written = write(client, name, now).and_then(|()| show(client, name));
    let error = match written {
        Ok(shown) if same(&shown, now) => return Ok(()),
        Ok(shown) => SandboxError::VariableRounded { name: name.to_owned(), value: now.to_owned(), shown },
        Err(error) => error,
    };
    // A refused variable is unchanged; most of them could not be set to their own value either.
    if !same(&show(client, name)?, was) {
        write(client, name, was)?;
    }
    write_where_different(client, along)?;
    site.journal.close(id, Closing::Restored, "it could not be set")?;
    Err(error)
}

/// Options whose value the server shows differently: name, given value, shown value. Options that are no variable, and
/// values that cannot be compared (a word given as a number), are skipped.
///
/// # Errors
/// The server cannot be reached.
pub(crate) fn became(
    server: &ServerInfo,
    settings: &[Setting],
) -> Result<Vec<(String, String, String)>, SandboxError> {
    if settings.is_empty() {
        return Ok(vec![]);
    }
    let refused = |source| SandboxError::Unreachable { name: server.name.clone(), source };
    let rows = connect(server)?.query("SHOW GLOBAL VARIABLES").map_err(refused)?;
    let shown: BTreeMap<String, String> = (0..rows.len())
        .filter_map(|row| Some((rows.text(row, 0)?.to_ascii_lowercase(), rows.text(row, 1)?.into_owned())))
        .collect();
    // The last one counts.
    let given: BTreeMap<&str, &str> = settings
        .iter()
        .map(|setting| (setting.name.strip_prefix("loose_").unwrap_or(&setting.name), setting.value.as_str()))
        .collect();
    let differs = |(name, given): (&str, &str)| {
        let shown = shown.get(name).filter(|shown| !shows(given, shown))?;
        Some((name.to_owned(), given.to_owned(), shown.clone()))
    };
    Ok(given.into_iter().filter_map(differs).collect())
}

/// Whether the shown value can be the given one.
fn shows(given: &str, shown: &str) -> bool {
    let plain = plain(given);
    if same(&plain, shown) {
        return true;
    }
    let number = |text: &str| canonical(text).parse::<f64>().ok();
    match (number(&plain), number(shown)) {
        // For a negative value the server chooses.
        (Some(given), Some(_)) => given < 0.0,
        // A list shows more than was given (`sql_mode`, `optimizer_switch`), a name its full form (`utf8mb3`).
        (None, None) => {
            let shown = shown.to_ascii_lowercase();
            given.to_ascii_lowercase().split(',').all(|part| shown.contains(part.trim()))
        }
        _ => true,
    }
}

/// Connects to the private servers of this host, and to servers of the user, to restore their variables.
#[derive(Debug, Clone, Copy)]
pub struct PrivateServers;

impl Hooks for PrivateServers {
    fn put_back(&self, change: &dyn Change) -> Outcome {
        if let Some(variable) = change.as_kind() {
            return users_server::put_back(variable);
        }
        match change.as_kind().map(put_back) {
            Some(Ok(outcome)) => outcome,
            Some(Err(error)) => Outcome::failed(error.to_string()),
            None => Outcome::failed("no private server can put it back"),
        }
    }

    fn claim(&self, purpose: &str, mount: &dyn Change) -> Result<Option<File>, String> {
        data::claim(purpose, mount)
    }
}

fn put_back(variable: &ChangedVariable) -> Result<Outcome, SandboxError> {
    let Some(description) = ServerFolder::with_path(variable.folder.clone()).load()? else {
        return Ok(Outcome::left_alone("its server's folder is gone"));
    };
    let mut client = connect(&description.server)?;
    let ChangedVariable { name, was, now, along, .. } = variable;
    put_back_value(&mut client, &Swapped { name, was, now, along })
}

/// A variable that was set, by any kind of change.
pub(crate) struct Swapped<'a> {
    pub(crate) name: &'a str,
    /// The value before.
    pub(crate) was: &'a str,
    /// The new value.
    pub(crate) now: &'a str,
    /// Neighbours with their values before.
    pub(crate) along: &'a [(String, String)],
}

/// Restores a variable that still has the value that was set.
pub(crate) fn put_back_value(client: &mut Client, swapped: &Swapped<'_>) -> Result<Outcome, SandboxError> {
    let Swapped { name, was, now, along } = swapped;
    let current = show(client, name)?;
    if same(&current, was) {
        write_where_different(client, along)?;
        return Ok(Outcome::restored(format!("it is {was} already")));
    }
    if !same(&current, now) {
        return Ok(Outcome::left_alone(format!(
            "another client has since set it to {current}; mydyno had set it from {was} to {now}"
        )));
    }
    write(client, name, was)?;
    write_where_different(client, along)?;
    let back = show(client, name)?;
    Ok(if same(&back, was) {
        Outcome::restored(format!("set back to {was}"))
    } else {
        Outcome::failed(format!("it became {back} instead of {was}"))
    })
}

fn connect(server: &ServerInfo) -> Result<Client, SandboxError> {
    connect_with(server, |_| {})
}

/// Connects with a short read timeout: the journal is locked for other commands meanwhile.
fn connect_briefly(server: &ServerInfo) -> Result<Client, SandboxError> {
    connect_with(server, |options| options.read_timeout = Some(ASKED_UNDER_THE_LOCK))
}

fn connect_with(
    server: &ServerInfo,
    change: impl FnOnce(&mut ConnectOptions),
) -> Result<Client, SandboxError> {
    let refused = |source| SandboxError::Unreachable { name: server.name.clone(), source };
    let mut options = connect_options(server)?;
    change(&mut options);
    // A socket without a listener: the server has just ended.
    Client::connect(&options).map_err(refused)
}

pub(crate) fn show(client: &mut Client, name: &str) -> Result<String, SandboxError> {
    let failed = |source| SandboxError::Variable { name: name.to_owned(), source };
    let rows = client.query(&format!("SELECT @@GLOBAL.{name}")).map_err(failed)?;
    rows.scalar()
        .map(|text| text.into_owned())
        .ok_or_else(|| SandboxError::VariableNull { name: name.to_owned() })
}

pub(crate) fn write(client: &mut Client, name: &str, value: &str) -> Result<(), SandboxError> {
    let literal = if value.parse::<f64>().is_ok_and(f64::is_finite) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
    };
    let failed = |source| SandboxError::Variable { name: name.to_owned(), source };
    client.query(&format!("SET GLOBAL {name} = {literal}")).map(drop).map_err(failed)
}

/// Restores the values of neighbours. Where another change of mydyno's still limits one, that change is restored later,
/// with its own neighbours.
pub(crate) fn write_where_different(
    client: &mut Client,
    values: &[(String, String)],
) -> Result<(), SandboxError> {
    for (name, value) in values {
        if !same(&show(client, name)?, value) {
            write(client, name, value)?;
        }
    }
    Ok(())
}

/// Names are inserted into statements, so only letters, digits and underscores are permitted.
pub(crate) fn check_name(name: &str) -> Result<(), SandboxError> {
    let fine = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fine {
        return Ok(());
    }
    let why = "a variable's name has letters, digits and underscores".to_owned();
    Err(SandboxError::Setting { input: name.to_owned(), why })
}

/// The value as `SET GLOBAL` accepts it: without suffixes such as `64M`.
pub(crate) fn plain(value: &str) -> String {
    let number = value.strip_suffix(['K', 'M', 'G', 'k', 'm', 'g']).is_some_and(|n| n.parse::<u64>().is_ok());
    match mydyno_model::units::parse_size(value) {
        Ok(bytes) if number => bytes.to_string(),
        _ => value.to_owned(),
    }
}

/// Whether two texts are the same value: switches have two spellings, fractions trailing zeros, words any case.
pub(crate) fn same(a: &str, b: &str) -> bool {
    let (a, b) = (canonical(a), canonical(b));
    a == b || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

fn canonical(text: &str) -> String {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" => "1".to_owned(),
        "off" | "false" => "0".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_several_spellings() {
        for (a, b) in [("1", "ON"), ("off", "0"), ("10.000000", "10"), ("MIXED", "mixed"), ("x", "x")] {
            assert!(same(a, b), "{a} {b}");
        }
        assert!(!same("1", "2") && !same("ROW", "MIXED"));
        assert_eq!((plain("64M"), plain("64"), plain("M")), ("67108864".into(), "64".into(), "M".into()));
    }

    #[test]
    fn what_a_server_makes_of_an_option_is_told_from_how_it_shows_it() {
        for (given, shown) in [
            ("32M", "33554432"),
            ("1", "ON"),
            ("2.5", "2.500000"),
            ("ANSI, TRADITIONAL", "REAL_AS_FLOAT,ANSI,STRICT_TRANS_TABLES,TRADITIONAL"),
            ("mrr=on", "index_merge=on,mrr=on"),
            ("utf8", "utf8mb3"),
            ("bin.log", "ON"),
            ("-1", "9"),
            ("2", "DEMAND"),
        ] {
            assert!(shows(given, shown), "{given} {shown}");
        }
        for (given, shown) in [("100000", "214"), ("32M", "134217728"), ("1", "OFF"), ("ROW", "MIXED")] {
            assert!(!shows(given, shown), "{given} {shown}");
        }
    }

    #[test]
    fn variables_that_limit_each_other_are_neighbours() {
        let of = |name: &str| neighbours(name).collect::<Vec<_>>();
        assert_eq!(of("innodb_io_capacity"), ["innodb_io_capacity_max"]);
        assert_eq!(of("INNODB_IO_CAPACITY_MAX"), ["innodb_io_capacity"]);
        assert!(of("max_connections").is_empty());
    }

    #[test]
    fn names_that_are_no_names_reach_no_statement() {
        for name in ["", "a b", "a;b", "a.b", "a'"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
