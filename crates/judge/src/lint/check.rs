//! The checks, and their problems as findings.

use std::collections::BTreeMap;

use mydyno_model::claim::{Confidence, Cost, Proof, Severity, StepKind};
use mydyno_model::facts::FactSet;
use mydyno_model::finding::{Evidence, Finding, FindingRemedy, MissingFact, RemedyStep, State};

use crate::judge::rank;
use crate::knobs::{Server, Target};

/// The area of these findings.
pub const AREA: &str = "options";

/// One of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Its id; findings append their subject, as in `option-removed/query_cache_size`.
    pub id: &'static str,
    /// The condition that should hold.
    pub title: &'static str,
    /// The consequence when the condition does not hold.
    pub why: &'static str,
}

/// All checks, in the order of their findings.
pub const CHECKS: [Check; 11] = [
    Check {
        id: "option-file",
        title: "The server reads its option files without a fault",
        why: "Most faults of form stop the server at its next start; a file that is passed over leaves it on defaults.",
    },
    Check {
        id: "option-unknown",
        title: "Every option is known to the server",
        why: "A server does not start with an option that it does not know; one with loose- before it is passed over, and the server goes on with its default.",
    },
    Check {
        id: "option-removed",
        title: "Every option is still there in this release",
        why: "A server does not start with an option that was removed; what it did has another name, or is gone.",
    },
    Check {
        id: "option-value",
        title: "The server takes every value",
        why: "A value that cannot be read stops the server, or the part that it belongs to.",
    },
    Check {
        id: "option-changed-value",
        title: "Values lie in the server's ranges",
        why: "The server takes another value than the one that is written, with a warning that few read.",
    },
    Check {
        id: "option-duplicate",
        title: "Every option is written once",
        why: "The last line wins: who changes another one changes nothing.",
    },
    Check {
        id: "option-not-in-force",
        title: "What is written is what the server runs with",
        why: "The server does not run as its files say, and the next restart may change how it behaves, without notice.",
    },
    Check {
        id: "option-group",
        title: "Groups are those that the server reads",
        why: "Options of a group that the server does not read have no effect.",
    },
    Check {
        id: "option-without-effect",
        title: "Every option does something",
        why: "The server takes the option for the sake of old files and ignores it: what it is relied on for does not happen.",
    },
    Check {
        id: "option-deprecated",
        title: "No option is deprecated",
        why: "A later release does not start with it.",
    },
    Check {
        id: "option-abbreviated",
        title: "Names of options are written in full",
        why: "A name that is cut short means something else, or nothing, once a release brings a second option that begins so.",
    },
];

/// Whether a finding or a filter such as `--only` refers to this check.
pub fn is_of(id: &str, check: &str) -> bool {
    id == check || id.strip_prefix(check).is_some_and(|rest| rest.starts_with(['/', '@']))
}

/// A problem with an option.
pub struct Problem {
    about: String,
    summary: String,
    evidence: Vec<Evidence>,
    remedy: Option<String>,
    traps: Vec<String>,
    missing: Vec<MissingFact>,
}

impl Problem {
    /// A problem with `about`, the option or the file.
    pub fn new(about: &str, summary: String) -> Self {
        Self {
            about: about.to_owned(),
            summary,
            evidence: vec![],
            remedy: None,
            traps: vec![],
            missing: vec![],
        }
    }

    /// Adds a fact that shows the problem.
    #[must_use]
    pub fn evidence(mut self, fact: &str, source: &str, value: &str) -> Self {
        self.evidence.push(Evidence {
            fact: fact.to_owned(),
            value: value.into(),
            unit: String::new(),
            source: source.to_owned(),
        });
        self
    }

    /// Sets the remedy.
    #[must_use]
    pub fn remedy(mut self, text: String) -> Self {
        self.remedy = Some(text);
        self
    }

    /// Adds a warning about applying the remedy.
    #[must_use]
    pub fn trap(mut self, text: String) -> Self {
        self.traps.push(text);
        self
    }

    /// Adds a missing fact; the finding's state is then unknown.
    #[must_use]
    pub fn missing(mut self, missing: MissingFact) -> Self {
        self.missing.push(missing);
        self
    }
}

/// The problems of all checks.
pub struct Report {
    target: Target,
    certain: bool,
    problems: Vec<(&'static str, Severity, Problem)>,
    unseen: Vec<MissingFact>,
}

impl Report {
    /// `certain`: a server of the release's series was queried.
    pub fn new(target: &Target, certain: bool) -> Self {
        Self { target: target.clone(), certain, problems: Vec::new(), unseen: Vec::new() }
    }

    /// Adds a finding of a check.
    pub fn add(&mut self, check: &'static str, severity: Severity, problem: Problem) {
        self.problems.push((check, severity, problem));
    }

    /// Records options that could not be read: no check holds for them.
    pub fn unseen(&mut self, missing: MissingFact) {
        self.unseen.push(missing);
    }

    /// Converts the problems to findings. A check without problems holds, or is unknown where options could not be read.
    pub fn findings(self, options: usize, server: &Server) -> Vec<Finding> {
        let confidence = if self.certain { Confidence::Certain } else { Confidence::Likely };
        let sources = vec![format!("{} {}, asked by scripts/knobs", server.engine, server.version)];
        let mut findings = Vec::new();
        let mut problems = self.problems;
        for check in &CHECKS {
            let (of_check, rest): (Vec<_>, Vec<_>) =
                problems.into_iter().partition(|(id, ..)| *id == check.id);
            problems = rest;
            if of_check.is_empty() {
                let mut summary = format!("{options} options examined for {}", self.target);
                let mut state = State::Holds;
                if !self.unseen.is_empty() {
                    let why: Vec<&str> = self.unseen.iter().map(|missing| missing.why.as_str()).collect();
                    summary = format!("{summary}; others were not seen: {}", why.join("; "));
                    state = State::Unknown;
                }
                let mut finding = plain(check, &sources, state, Severity::Info, confidence, summary);
                finding.missing = self.unseen.clone();
                findings.push(finding);
            }
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            for (_, severity, problem) in of_check {
                let state = if problem.missing.is_empty() { State::Violated } else { State::Unknown };
                let mut finding = plain(check, &sources, state, severity, confidence, problem.summary);
                finding.claim = format!("{}/{}", check.id, problem.about);
                // A file that is read twice reports its faults twice.
                let times = seen.entry(finding.claim.clone()).or_default();
                *times += 1;
                if *times > 1 {
                    finding.claim = format!("{}@{times}", finding.claim);
                }
                finding.evidence = problem.evidence;
                finding.missing = problem.missing;
                finding.traps = problem.traps;
                finding.remedy =
                    problem.remedy.filter(|_| state == State::Violated).map(|text| FindingRemedy {
                        cost: Cost::Restart,
                        now: vec![],
                        persistent: vec![RemedyStep { kind: StepKind::Text, text }],
                        risk: "the server reads it at its next start: try that on another machine first"
                            .to_owned(),
                    });
                findings.push(finding);
            }
        }
        findings
    }
}

fn plain(
    check: &Check,
    sources: &[String],
    state: State,
    severity: Severity,
    confidence: Confidence,
    summary: String,
) -> Finding {
    let rank = match state {
        State::Violated | State::Unknown => rank(severity, AREA, confidence, Cost::Restart),
        State::Holds | State::NotApplicable => 0.0,
    };
    Finding {
        claim: check.id.to_owned(),
        area: AREA.to_owned(),
        title: check.title.to_owned(),
        state,
        severity,
        confidence,
        rank,
        same_cause_as: None,
        summary,
        why: check.why.to_owned(),
        evidence: vec![],
        arithmetic: vec![],
        missing: vec![],
        remedy: None,
        undo: vec![],
        ledger: None,
        traps: vec![],
        sources: sources.to_vec(),
        proved: vec![],
        proof: Proof {
            experiment: None,
            factor: None,
            levels: vec![],
            not_testable: Some("whether a server takes an option is not a question of speed".to_owned()),
        },
        accepted: None,
    }
}

/// A finding for options that could not be read.
pub fn not_seen(facts: &FactSet, target: &Target) -> Finding {
    let why = match facts.facts.get("server.options.set").map(|fact| &fact.status) {
        Some(
            mydyno_model::facts::Status::Denied { why }
            | mydyno_model::facts::Status::Absent { why }
            | mydyno_model::facts::Status::Error { why },
        ) => why.clone(),
        _ => "nobody looked for the server's option files".to_owned(),
    };
    let summary = format!("the options of {target} were not seen");
    let mut finding = plain(&CHECKS[0], &[], State::Unknown, Severity::Info, Confidence::Certain, summary);
    let fact = "server.options.set".to_owned();
    finding.missing = vec![MissingFact { fact, status: "not_read".to_owned(), why }];
    finding
}
