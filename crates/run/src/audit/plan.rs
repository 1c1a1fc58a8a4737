//! The plan of an audit and its documents.

use std::path::PathBuf;

use mydyno_facts::Options;
use mydyno_judge::knobs;
use mydyno_judge::{Change, Claims, accept};
use mydyno_model::facts::FactSet;
use mydyno_model::finding::Findings;

use crate::target::Target;

/// The plan of an audit.
pub struct AuditPlan<'a> {
    /// The source of the facts.
    pub source: FactSource,
    /// Which facts are collected of a live source, and how.
    pub options: Options,
    /// Whether names that the user chose are replaced by tokens.
    pub redact: bool,
    /// How the facts are judged.
    pub judging: Judging<'a>,
}

/// The source of the facts of an audit.
#[derive(Debug, Clone)]
pub enum FactSource {
    /// A server, and this host where the server runs here.
    Server(Target),
    /// This host only.
    Host,
    /// Another host and its server through ssh, where this program collects them with these arguments.
    Remote {
        /// `[USER@]HOST`.
        host: String,
        /// Arguments of the program there.
        args: Vec<String>,
    },
    /// The bundle of an earlier audit.
    Bundle(PathBuf),
    /// One option file and what it includes.
    OptionFile {
        /// The file.
        path: PathBuf,
        /// The release that would read it.
        release: knobs::Target,
        /// Suffix of option groups that are read too.
        suffix: Option<String>,
    },
}

/// How facts are judged.
pub struct Judging<'a> {
    /// The catalogue.
    pub claims: &'a Claims,
    /// Ids of the claims to judge; none are judged over an option file alone.
    pub wanted: Vec<String>,
    /// Ids of checks of option files to report alone; empty: all.
    pub only: Vec<String>,
    /// Ids of checks of option files to leave out.
    pub skip: Vec<String>,
    /// Whether option files are checked.
    pub lint: bool,
    /// The release to check option files for; the server's own unless given.
    pub release: Option<knobs::Target>,
    /// Findings that are accepted.
    pub accepted: Vec<accept::Entry>,
    /// Facts of an earlier audit to compare with.
    pub before: Option<FactSet>,
}

/// The facts of an audit.
#[derive(Debug, Clone)]
pub struct Facts {
    /// With all names; claims are judged over these.
    pub open: FactSet,
    /// With tokens for names, when that was asked for.
    pub redacted: Option<FactSet>,
    /// Whether they are those of an option file alone.
    pub of_option_file: bool,
}

impl Facts {
    /// The facts that may be shown and kept.
    pub fn shown(&self) -> &FactSet {
        self.redacted.as_ref().unwrap_or(&self.open)
    }
}

/// The documents of an audit.
#[derive(Debug)]
pub struct Audited {
    /// The facts.
    pub facts: Facts,
    /// The findings.
    pub findings: Findings,
    /// Changes since the earlier audit; `None` without one.
    pub changes: Option<Vec<Change>>,
    /// Sentences about accepted findings that need attention.
    pub notes: Vec<String>,
}
