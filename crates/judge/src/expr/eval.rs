//! Evaluates expressions over facts and records the evidence.

use mydyno_model::facts::{Fact, FactSet, Status};

use super::ast::{Expr, FactRef, Over, Part, Quantifier, shown_parts};
use super::functions::call;
use super::operators::{arithmetic, compared, equal};
use super::show::with_values;
use super::stop::{Found, Stop};
use super::trace::Trace;
use super::unit::Dimension;
use super::value::Value;

/// An expression's value and its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The value, or the reason why there is none.
    pub result: Result<Value, Stop>,
    /// Ids of the facts that decided the value, in reading order.
    pub facts: Vec<String>,
    /// The comparisons that decided the value, with their values.
    pub steps: Vec<String>,
}

/// Names that are bound to values.
pub type Scope<'s> = &'s [(String, Value)];

/// Maximum number of items that an `any` or `all` names as evidence.
const WITNESSES: usize = 10;

/// Maximum number of items that the quantifiers of one evaluation iterate over.
const MOST_ITEMS: usize = 200_000;

/// Maximum number of subexpressions that one evaluation computes; a quantifier computes its body for each item.
const MOST_STEPS: usize = 5_000_000;

/// Evaluates an expression.
pub fn evaluate(expr: &Expr, facts: &FactSet, scope: Scope<'_>) -> Evaluation {
    let mut machine = Machine {
        facts,
        locals: scope.to_vec(),
        trace: Trace::default(),
        left: MOST_ITEMS,
        steps_left: MOST_STEPS,
    };
    let result = machine.value(expr);
    // Without a comparison, as in `not on(@@general_log)`, the whole expression is the evidence.
    if let (Ok(Value::Bool(is)), true) = (&result, machine.trace.steps.is_empty()) {
        machine.step(expr, *is);
    }
    Evaluation { result, facts: machine.trace.facts, steps: machine.trace.steps }
}

/// Evaluates the items of a collection.
///
/// # Errors
/// A fact is missing, or the expression is not a list.
pub fn domain(over: &Over, facts: &FactSet) -> Result<Vec<Value>, Stop> {
    let mut machine =
        Machine { facts, locals: vec![], trace: Trace::default(), left: MOST_ITEMS, steps_left: MOST_STEPS };
    machine.domain(over)
}

/// The result of looking up a fact.
pub enum Lookup {
    /// The fact has a value.
    Value(Value),
    /// This system does not have the fact.
    Absent(Stop),
    /// The fact was not read, so the system may have it.
    Unknown(Stop),
}

pub struct Machine<'a> {
    facts: &'a FactSet,
    locals: Vec<(String, Value)>,
    trace: Trace,
    left: usize,
    steps_left: usize,
}

impl Machine<'_> {
    pub fn value(&mut self, expr: &Expr) -> Found {
        self.steps_left = self
            .steps_left
            .checked_sub(1)
            .ok_or_else(|| Stop::Fault(format!("takes more than {MOST_STEPS} steps")))?;
        match expr {
            Expr::Bool(b) => Ok(Value::Bool(*b)),
            Expr::Number { value, unit } => {
                let (factor, dimension) =
                    super::unit::of_literal(unit).ok_or_else(|| Stop::Fault(format!("no unit {unit:?}")))?;
                // Zero has no unit: it is comparable with every dimension.
                let dimension = if *value == 0.0 && unit.is_empty() { Dimension::Any } else { dimension };
                Ok(Value::Number(value * factor, dimension))
            }
            Expr::Text(text) => Ok(Value::Text(text.clone())),
            Expr::Version(version) => Ok(Value::Version(*version)),
            Expr::List(items) => {
                items.iter().map(|item| self.value(item)).collect::<Result<_, _>>().map(Value::List)
            }
            Expr::Fact(fact) => self.fact(fact),
            Expr::Local(name) => self.local(name).cloned(),
            Expr::Named(_, inner) => self.value(inner),
            Expr::Field(inner, name) => match self.value(inner)? {
                Value::Record(map) => Ok(map.get(name).map_or(Value::Nothing, |v| Value::of_json(v, ""))),
                other => Err(Stop::Fault(format!("{expr}: {} has no fields", other.kind()))),
            },
            Expr::Not(inner) => self.truth(inner).map(|b| Value::Bool(!b)),
            Expr::Negative(inner) => {
                let (n, dimension) = self.number(inner)?;
                Ok(Value::Number(-n, dimension))
            }
            Expr::And(a, b) => self.joined(a, b, false),
            Expr::Or(a, b) => self.joined(a, b, true),
            Expr::Compare(compare, a, b) => {
                let (left, right) = (self.value(a)?, self.value(b)?);
                let is = compared(*compare, (a, &left), (b, &right))?;
                self.step(expr, is);
                Ok(Value::Bool(is))
            }
            Expr::In(a, b, negated) => {
                let (item, list) = (self.value(a)?, self.value(b)?);
                let Value::List(items) = list else {
                    return Err(Stop::Fault(format!("{b} is {}, not a list", list.kind())));
                };
                let is = items.iter().any(|i| equal(&item, i)) != *negated;
                self.step(expr, is);
                Ok(Value::Bool(is))
            }
            Expr::Contains(a, b) => {
                let (whole, part) = (self.value(a)?, self.value(b)?);
                let is = match (&whole, &part) {
                    (Value::Text(whole), Value::Text(part)) => {
                        whole.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
                    }
                    (Value::List(items), part) => items.iter().any(|i| equal(i, part)),
                    _ => {
                        let text = format!("{a} is {} and cannot contain {}", whole.kind(), part.kind());
                        return Err(Stop::Fault(text));
                    }
                };
                self.step(expr, is);
                Ok(Value::Bool(is))
            }
            Expr::Arithmetic(operation, a, b) => {
                let (left, right) = (self.number(a)?, self.number(b)?);
                arithmetic(*operation, expr, left, right)
            }
            Expr::Each(quantifier, name, over, body) => self.each(*quantifier, name, over, body),
            Expr::Call(function, arguments) => call(self, *function, arguments, expr),
        }
    }

    /// Kleene's three-valued logic: one side may decide, even when the other is unknown.
    fn joined(&mut self, a: &Expr, b: &Expr, decides: bool) -> Found {
        let before = self.trace.clone();
        let left = self.truth(a);
        match left {
            Ok(is) if is == decides => return Ok(Value::Bool(decides)),
            Err(Stop::Fault(text)) => return Err(Stop::Fault(text)),
            _ => {}
        }
        let after_left = std::mem::replace(&mut self.trace, before);
        let right = self.truth(b);
        if matches!(right, Ok(is) if is == decides) {
            // Only the right side decided; the left one is not evidence.
            return Ok(Value::Bool(decides));
        }
        let right_trace = std::mem::replace(&mut self.trace, after_left);
        self.trace.add(right_trace);
        match (left, right) {
            (Ok(_), right) => right.map(Value::Bool),
            (Err(left), Ok(_)) => Err(left),
            (Err(left), Err(right)) => Err(left.and(right)),
        }
    }

    /// Evaluates an expression that must be boolean.
    pub fn truth(&mut self, expr: &Expr) -> Result<bool, Stop> {
        match self.value(expr)? {
            Value::Bool(b) => Ok(b),
            other => Err(Stop::Fault(format!(
                "{expr} is {}, not yes or no; a setting that is ON or OFF is asked with on(…)",
                other.kind()
            ))),
        }
    }

    /// Evaluates an expression that must be a number.
    pub fn number(&mut self, expr: &Expr) -> Result<(f64, Dimension), Stop> {
        match self.value(expr)? {
            Value::Number(n, dimension) => Ok((n, dimension)),
            other => Err(Stop::Fault(format!("{expr} is {}, not a number", other.kind()))),
        }
    }

    fn local(&self, name: &str) -> Result<&Value, Stop> {
        let found = self.locals.iter().rev().find(|(n, _)| n == name);
        found.map(|(_, value)| value).ok_or_else(|| Stop::Fault(format!("${name} has no value")))
    }

    /// A fact's id with the values of bound names filled in.
    fn id(&self, fact: &FactRef) -> Result<String, Stop> {
        let parts = fact.0.iter().map(|part| match part {
            Part::Name(name) => Ok(name.clone()),
            Part::Star => Err(Stop::Fault(format!("{} has a star", shown_parts(&fact.0)))),
            Part::Local(name) => match self.local(name)? {
                Value::Text(text) => Ok(text.clone()),
                Value::Number(n, _) => Ok(n.to_string()),
                other => Err(Stop::Fault(format!("${name} is {}, not a name", other.kind()))),
            },
        });
        Ok(parts.collect::<Result<Vec<_>, _>>()?.join("."))
    }

    fn fact(&mut self, fact: &FactRef) -> Found {
        match self.look_up(fact)? {
            Lookup::Value(value) => Ok(value),
            Lookup::Absent(stop) | Lookup::Unknown(stop) => Err(stop),
        }
    }

    /// Looks up a fact.
    pub fn look_up(&mut self, fact: &FactRef) -> Result<Lookup, Stop> {
        let id = self.id(fact)?;
        let Some(found) = self.facts.facts.get(&id) else {
            let looked = self.looked_for(&id);
            return Ok(if looked {
                Lookup::Absent(Stop::missing(&id, "absent", "this system does not have it"))
            } else {
                Lookup::Unknown(Stop::missing(&id, "not_read", "it was not read"))
            });
        };
        Ok(match &found.status {
            Status::Ok if found.value.is_null() => {
                Lookup::Unknown(Stop::missing(&id, "error", "it was read and has no value"))
            }
            Status::Ok => {
                self.trace.fact(&id);
                Lookup::Value(Value::of_fact(found))
            }
            Status::Absent { why } => Lookup::Absent(Stop::missing(&id, "absent", why)),
            Status::Denied { why } => Lookup::Unknown(Stop::missing(&id, "denied", why)),
            Status::Error { why } => Lookup::Unknown(Stop::missing(&id, "error", why)),
        })
    }

    /// Whether a collector looked for a missing fact: others of its family were read, whose ids differ in the last part
    /// (`server.variable.NAME`) or in the one before (`schema.engine.ENGINE.tables`).
    fn looked_for(&self, id: &str) -> bool {
        let Some((family, last)) = id.rsplit_once('.') else { return false };
        // Variables of components have a dot in their names; all variables are read at once.
        const VARIABLES: &str = "server.variable.";
        if id.starts_with(VARIABLES) {
            let read =
                |(other, fact): (&String, &Fact)| fact.status == Status::Ok && other.starts_with(VARIABLES);
            return self.facts.facts.iter().any(read);
        }
        let above = family.rsplit_once('.').map(|(above, _)| above);
        self.facts.facts.iter().filter(|(_, fact)| fact.status == Status::Ok).any(|(other, _)| {
            let Some((other_family, other_last)) = other.rsplit_once('.') else { return false };
            let of_another =
                above.is_some() && other_family.rsplit_once('.').map(|(above, _)| above) == above;
            other_family == family || of_another && other_last == last
        })
    }

    fn domain(&mut self, over: &Over) -> Result<Vec<Value>, Stop> {
        let items = match over {
            Over::Items(expr) => match self.value(expr)? {
                Value::List(items) => items,
                other => return Err(Stop::Fault(format!("{expr} is {}, not a list", other.kind()))),
            },
            Over::Names(pattern) => self.names(pattern)?,
        };
        if items.len() > self.left {
            return Err(Stop::Fault(format!("goes over more than {MOST_ITEMS} things")));
        }
        self.left -= items.len();
        Ok(items)
    }

    /// The names that match the star.
    fn names(&self, pattern: &FactRef) -> Result<Vec<Value>, Stop> {
        let star = pattern.0.iter().position(|p| *p == Part::Star).unwrap_or(0);
        let (before, after) = (FactRef(pattern.0[..star].to_vec()), FactRef(pattern.0[star + 1..].to_vec()));
        let (before, after) = (self.id(&before)?, self.id(&after)?);
        let mut names: Vec<&str> = Vec::new();
        for id in self.facts.facts.keys() {
            let Some(rest) = id.strip_prefix(&before).and_then(|rest| rest.strip_prefix('.')) else {
                continue;
            };
            let (name, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let fits = after.is_empty()
                || rest.strip_prefix(&after).is_some_and(|more| more.is_empty() || more.starts_with('.'));
            if fits && !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            return Err(Stop::missing(
                shown_parts(&pattern.0),
                "not_read",
                "no fact of this family was read",
            ));
        }
        Ok(names.into_iter().map(|n| Value::Text(n.to_owned())).collect())
    }

    fn each(&mut self, quantifier: Quantifier, name: &str, over: &Over, body: &Expr) -> Found {
        let items = self.domain(over)?;
        let before = std::mem::take(&mut self.trace);
        let mut outcomes: Vec<(Found, Trace)> = Vec::with_capacity(items.len());
        for item in items.clone() {
            self.locals.push((name.to_owned(), item));
            let found = match quantifier {
                Quantifier::Sum => self.number(body).map(|(n, d)| Value::Number(n, d)),
                _ => self.truth(body).map(Value::Bool),
            };
            self.locals.pop();
            outcomes.push((found, std::mem::take(&mut self.trace)));
        }
        self.trace = before;
        if let Some((Err(Stop::Fault(text)), _)) =
            outcomes.iter().find(|(found, _)| matches!(found, Err(Stop::Fault(_))))
        {
            return Err(Stop::Fault(text.clone()));
        }
        let is = |wanted: bool| move |found: &Found| *found == Ok(Value::Bool(wanted));
        let decided = match quantifier {
            Quantifier::Any => outcomes.iter().any(|(found, _)| is(true)(found)).then_some(true),
            Quantifier::All => outcomes.iter().any(|(found, _)| is(false)(found)).then_some(false),
            _ => None,
        };
        if let Some(decided) = decided {
            let witnesses = outcomes.into_iter().filter(|(found, _)| is(decided)(found));
            witnesses.take(WITNESSES).for_each(|(_, trace)| self.trace.add(trace));
            return Ok(Value::Bool(decided));
        }
        let missing = outcomes.iter().filter_map(|(found, _)| found.as_ref().err().cloned());
        if let Some(stop) = missing.reduce(Stop::and) {
            return Err(stop);
        }
        let result = match quantifier {
            Quantifier::Any => Value::Bool(false),
            Quantifier::All => Value::Bool(true),
            Quantifier::Count => {
                Value::plain(outcomes.iter().filter(|(found, _)| is(true)(found)).count() as f64)
            }
            Quantifier::Sum => {
                let mut sum = (0.0, Dimension::Any);
                for (found, _) in &outcomes {
                    let Ok(Value::Number(n, dimension)) = found else { continue };
                    if !sum.1.fits(*dimension) {
                        return Err(Stop::Fault(format!("a sum of {} and {dimension}", sum.1)));
                    }
                    sum = (sum.0 + n, sum.1.sum(*dimension));
                }
                Value::Number(sum.0, sum.1)
            }
            Quantifier::Which => {
                let chosen = items.into_iter().zip(&outcomes).filter(|(_, (found, _))| is(true)(found));
                Value::List(chosen.map(|(item, _)| item).collect())
            }
        };
        outcomes.into_iter().take(WITNESSES).for_each(|(_, trace)| self.trace.add(trace));
        Ok(result)
    }

    /// Records a comparison with its values.
    fn step(&mut self, expr: &Expr, is: bool) {
        let outcome = if is { "true" } else { "false" };
        let text = with_values(expr, &mut |part| self.value_without_evidence(part));
        self.trace.step(format!("{text}: {outcome}"));
    }

    /// A value for display, which leaves no evidence.
    pub fn value_without_evidence(&mut self, expr: &Expr) -> Option<Value> {
        let trace = self.trace.clone();
        let value = self.value(expr).ok();
        self.trace = trace;
        value
    }
}
