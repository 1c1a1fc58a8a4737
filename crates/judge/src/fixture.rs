//! Converts the facts of fixtures into a set of facts.

use indexmap::IndexMap;
use mydyno_model::Header;
use mydyno_model::facts::{Fact, FactSet, Status};
use serde_json::{Map, Value};
use time::OffsetDateTime;

/// The unit of a fact by its id; `None` for a fact that no collector reads.
pub type Catalogue<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// Combines the facts that all fixtures share with those of one fixture.
///
/// Keys may be whole ids or nested tables. `version = "mariadb 10.11.6"` stands for the server's family and version. A missing
/// fact is `{ denied = "why" }`, `{ absent = "why" }` or `{ error = "why" }`; a shared fact that a fixture removes is `{
/// not_read = true }`; a fact whose value has fields is `{ value = … }`.
///
/// # Errors
/// Names that no collector reads, and invalid values, one sentence each.
pub fn facts(
    shared: &IndexMap<String, Value>,
    own: &IndexMap<String, Value>,
    catalogue: Catalogue<'_>,
) -> Result<FactSet, Vec<String>> {
    let mut list = IndexMap::new();
    let mut problems = Vec::new();
    for (key, value) in shared.iter().chain(own) {
        flatten(key, value, &mut list);
    }
    let mut facts = IndexMap::new();
    for (id, value) in list {
        if id == "version" {
            match version(&value) {
                Some(found) => facts.extend(found),
                None => problems.push(format!("version = {value}: write it as \"mariadb 10.11.6\"")),
            }
            continue;
        }
        if value.get("not_read").is_some() {
            continue;
        }
        match catalogue(&id) {
            None => problems.push(not_collected(&id)),
            Some(unit) => match fact(&value, unit) {
                Some(fact) => {
                    facts.insert(id, fact);
                }
                None => problems.push(format!(
                    "{id}: a table is {{ value = … }}, {{ denied = … }}, {{ absent = … }}, {{ error = … }} or {{ not_read = true }}"
                )),
            },
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(FactSet { header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH), facts, extra: Map::new() })
}

/// The problem of a fact that no collector gives.
pub fn not_collected(id: &str) -> String {
    let of_kernel = match id.starts_with("host.sysctl.") {
        true => {
            "; a kernel setting is read when crates/facts/src/collectors/sysctl.rs or a row of knobs/settings names it"
        }
        false => "",
    };
    format!("{id}: nothing collects a fact of this name: docs/reference/facts.md lists them{of_kernel}")
}

const SPECIAL: [&str; 5] = ["value", "denied", "absent", "error", "not_read"];

fn flatten(key: &str, value: &Value, list: &mut IndexMap<String, Value>) {
    match value.as_object() {
        Some(map) if !SPECIAL.iter().any(|s| map.contains_key(*s)) => {
            for (name, inner) in map {
                flatten(&format!("{key}.{name}"), inner, list);
            }
        }
        _ => {
            list.insert(key.to_owned(), value.clone());
        }
    }
}

fn fact(value: &Value, unit: &str) -> Option<Fact> {
    const SOURCE: &str = "fixture";
    let Some(map) = value.as_object() else { return Some(Fact::ok(value.clone(), unit, SOURCE)) };
    let (kind, inner) = map.iter().next().filter(|_| map.len() == 1)?;
    let why = inner.as_str().unwrap_or_default().to_owned();
    Some(match kind.as_str() {
        "value" => Fact::ok(inner.clone(), unit, SOURCE),
        "denied" => Fact::missing(Status::Denied { why }, SOURCE),
        "absent" => Fact::missing(Status::Absent { why }, SOURCE),
        "error" => Fact::missing(Status::Error { why }, SOURCE),
        _ => return None,
    })
}

/// Facts of the server for `mariadb 10.11.6`.
fn version(value: &Value) -> Option<Vec<(String, Fact)>> {
    let (family, number) = value.as_str()?.split_once(' ')?;
    if !["mysql", "mariadb"].contains(&family) {
        return None;
    }
    let version = crate::expr::Version::read(number)?;
    let text = if family == "mariadb" { format!("{number}-MariaDB") } else { number.to_owned() };
    let number = version.0 * 10_000 + version.1 * 100 + version.2;
    let ok = |id: &str, value: Value| (id.to_owned(), Fact::ok(value, "", "fixture"));
    Some(vec![
        ok("server.family", family.into()),
        ok("server.version", text.into()),
        ok("server.version_number", number.into()),
    ])
}
