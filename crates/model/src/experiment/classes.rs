//! Statements of several classes, timed on two servers with rising numbers of clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::LeverLevel;
use super::definition::{Definition, Published};
use crate::document::{Document, Header};
use crate::estimate::Estimate;

/// One table of a plan, as EXPLAIN shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// The part of the statement, as in `PRIMARY` or `DERIVED`.
    pub select: String,
    /// The table or its alias.
    pub table: String,
    /// How it is read, as in `ALL`, `ref` or `eq_ref`.
    pub access: String,
    /// The index; empty without one.
    pub key: String,
    /// Bytes of the index that are used; empty without one.
    pub key_length: String,
    /// Estimated rows, which differ with the statistics and count as no difference of plans.
    pub rows: String,
    /// Further remarks, as in `Using temporary`; not compared, since servers word them differently.
    pub extra: String,
}

impl PlanStep {
    /// Whether both read the same table in the same way.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.table, &self.access, &self.key, &self.key_length)
            == (&other.table, &other.access, &other.key, &other.key_length)
    }
}

/// The plan of a statement on one server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueryPlan {
    /// Its tables in the order in which they are read.
    pub steps: Vec<PlanStep>,
    /// Why it is unknown: the server's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl QueryPlan {
    /// Whether two plans differ; `None` where one of them is unknown.
    pub fn differs(&self, other: &Self) -> Option<bool> {
        if self.unknown.is_some() || other.unknown.is_some() {
            return None;
        }
        let alike = self.steps.len() == other.steps.len()
            && self.steps.iter().zip(&other.steps).all(|(a, b)| a.is_like(b));
        Some(!alike)
    }
}

/// A statement of a class with its plans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassStatement {
    /// Its name, as in `update-join`.
    pub name: String,
    /// Its text.
    pub sql: String,
    /// The plan on the baseline's server.
    pub baseline: QueryPlan,
    /// The plan on the treatment's server.
    pub treatment: QueryPlan,
}

/// Figures of one server: means over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClassFigures {
    /// Seconds until all clients had executed the class once.
    pub time_s: f64,
    /// The server's user CPU seconds in that time.
    pub user_s: f64,
    /// The server's system CPU seconds in that time.
    pub system_s: f64,
    /// Memory that the server held at the end of it, in bytes.
    pub memory_bytes: f64,
}

/// One round of a class with one number of clients: a line of `rounds.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassRound {
    /// Number of the servers' start, from 0.
    pub start: usize,
    /// Number of the class in the document, from 0.
    pub class: usize,
    /// Clients.
    pub connections: u32,
    /// How often each client executed the class; the times are those of one execution.
    pub times: u32,
    /// The baseline.
    pub baseline: ClassFigures,
    /// The treatment.
    pub treatment: ClassFigures,
    /// The second copy of the baseline.
    pub again: ClassFigures,
}

/// A class with one number of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassPoint {
    /// Clients that execute it at the same time.
    pub connections: u32,
    /// How often each client executed it in a round; the times are those of one execution.
    pub times: u32,
    /// Rounds in which both servers were measured.
    pub rounds: usize,
    /// The baseline.
    pub baseline: ClassFigures,
    /// The treatment.
    pub treatment: ClassFigures,
    /// (baseline − treatment) / baseline of the times, as a share: the study's *gain*. Positive: the treatment is faster.
    pub gain: Estimate,
    /// Whether the treatment is faster, where that is decided with an error of 5 % over all classes and numbers of clients
    /// together.
    pub faster: Option<bool>,
    /// The same of a second copy of the baseline: the noise.
    pub noise: Estimate,
}

/// A class of statements on one storage engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassResult {
    /// Class and storage engine, as in `update-join/innodb`.
    pub name: String,
    /// Whether the plan of a statement differs between the servers; `None` where one is unknown. Times of different plans say
    /// nothing of the builds.
    pub plans_differ: Option<bool>,
    /// Its statements.
    pub statements: Vec<ClassStatement>,
    /// By number of clients.
    pub points: Vec<ClassPoint>,
    /// The gain over all numbers of clients: of the geometric mean of the ratios.
    pub gain: Option<f64>,
    /// Quantities that were not measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_measured: Vec<String>,
}

/// Two servers compared by classes of statements: `mydyno prove build-compare`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassComparison {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Name of the experiment.
    pub experiment: String,
    /// The question.
    pub question: String,
    /// The answer in one sentence; empty in a plan, and while it is being measured.
    pub answer: String,
    /// Levers of the baseline.
    pub baseline: Vec<LeverLevel>,
    /// Levers of the treatment.
    pub treatment: Vec<LeverLevel>,
    /// The servers' versions, baseline first; empty in a plan.
    pub servers: Vec<String>,
    /// Starts of the servers. The intervals are over starts from three on; with fewer they are over rounds, and hold for these
    /// starts only.
    pub starts: usize,
    /// Rounds in each start.
    pub rounds: u32,
    /// Numbers of clients.
    pub connections: Vec<u32>,
    /// The experiment as its file states it, to go on with it.
    pub definition: Definition,
    /// Whether it has the long extent of the file.
    pub full: bool,
    /// Time for it, in seconds.
    pub budget_s: f64,
    /// Seed of rows and order.
    pub seed: u64,
    /// The classes, in the order of the file.
    pub classes: Vec<ClassResult>,
    /// Load and host in short lines.
    pub set_up: Vec<String>,
    /// Published figures.
    pub published: Vec<Published>,
    /// Why this set-up is only a stand-in for the published one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<String>,
    /// The command that repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for ClassComparison {
    const NAME: &'static str = "mydyno.classes";
    const MAJOR: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_differ_by_tables_accesses_and_keys_alone() {
        let step = |access: &str, rows: &str| PlanStep {
            table: "t".to_owned(),
            access: access.to_owned(),
            rows: rows.to_owned(),
            ..PlanStep::default()
        };
        let plan = |steps: Vec<PlanStep>| QueryPlan { steps, unknown: None };
        let all = plan(vec![step("ALL", "5")]);
        assert_eq!(all.differs(&plan(vec![step("ALL", "7")])), Some(false));
        assert_eq!(all.differs(&plan(vec![step("index", "5")])), Some(true));
        assert_eq!(all.differs(&plan(vec![step("ALL", "5"), step("ref", "1")])), Some(true));
        let unknown = QueryPlan { unknown: Some("no EXPLAIN of UPDATE".to_owned()), ..QueryPlan::default() };
        assert_eq!(all.differs(&unknown), None);
    }
}
