//! The load of an experiment, resolved as `mydyno bench` resolves its command line.

use indexmap::IndexMap;
use mydyno_levers::LeverSet;
use mydyno_model::experiment::definition::LoadDefinition;
use mydyno_run::request::{self, Machine};
use mydyno_run::{PlanError, Request, Resolved};
use serde_json::Value;

/// Options as they would be typed, by name; a repeated one becomes a list.
pub fn of_options(options: &[(String, String)]) -> IndexMap<String, Value> {
    let mut all: IndexMap<String, Value> = IndexMap::new();
    for (name, value) in options {
        let value = Value::String(value.clone());
        match all.get_mut(name) {
            None => {
                all.insert(name.clone(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    all
}

/// Resolves a load with one step; options of the workload and connections that are levers of an arm take precedence.
///
/// # Errors
/// All mistakes in it.
pub fn resolve(load: &LoadDefinition, lever_set: &LeverSet) -> Result<Resolved, Vec<PlanError>> {
    let levers = &lever_set.workload;
    let given = load.options.iter().flat_map(|(name, value)| typed(name, value));
    let request = Request {
        workload: load.workload.clone(),
        options: given.chain(levers.iter().cloned()).collect(),
        connections: lever_set.client.connections.or(load.connections).map(|n| n.to_string()),
        workers: load.workers.map(|n| n.to_string()),
        rate: load.rate.map(|rate| rate.to_string()),
        database: load.database.clone(),
        warmup: Some("0s".to_owned()),
        seed: load.seed,
        // Private servers permit statements that write; an experiment on a user's server revokes the permission.
        allow_write: true,
        no_observe: true,
        no_profile: true,
        ..Request::default()
    };
    let resolved = request::resolve(&request, Machine::here())?;
    if resolved.draft.steps.len() != 1 {
        let problem = "one number: an experiment measures one point".to_owned();
        return Err(vec![PlanError::Value { option: "connections", problem }]);
    }
    Ok(resolved)
}

/// An option as it would be typed; one for each element of a list.
pub(super) fn typed(name: &str, value: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        other => other.to_string(),
    };
    let values = value.as_array().map_or_else(|| vec![value], |values| values.iter().collect());
    values.into_iter().map(|value| (name.to_owned(), text(value))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_that_repeat_become_lists_and_are_typed_as_they_were() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let given = [pair("sql", "SELECT 1"), pair("transaction", "on"), pair("sql", "SELECT 2")];
        let options = of_options(&given);
        assert_eq!(options["sql"], json!(["SELECT 1", "SELECT 2"]));
        let typed: Vec<_> = options.iter().flat_map(|(name, value)| typed(name, value)).collect();
        assert_eq!(typed.len(), 3);
        assert_eq!(super::typed("x", &json!(true)), [pair("x", "on")]);
        assert_eq!(super::typed("x", &json!(7)), [pair("x", "7")]);
    }

    #[test]
    fn statements_that_write_are_permitted() {
        let options = of_options(&[("sql".to_owned(), "UPDATE shop.t SET n = n + 1".to_owned())]);
        let load = LoadDefinition { workload: "sql".to_owned(), options, ..LoadDefinition::default() };
        assert!(resolve(&load, &LeverSet::default()).unwrap().draft.allow.write);
    }

    #[test]
    fn a_load_is_one_point() {
        let load = LoadDefinition { workload: "oltp_point_select".to_owned(), ..LoadDefinition::default() };
        assert_eq!(resolve(&load, &LeverSet::default()).unwrap().draft.steps[0].connections, 16);
        let levers = LeverSet::parse(&[("client.connections".to_owned(), "3".to_owned())]).unwrap();
        assert_eq!(resolve(&load, &levers).unwrap().draft.steps[0].connections, 3);
        let load = LoadDefinition { workload: "oltp_point_selcet".to_owned(), ..load };
        assert!(
            resolve(&load, &LeverSet::default()).unwrap_err()[0].to_string().contains("oltp_point_select")
        );
    }
}
