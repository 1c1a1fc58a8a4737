//! JSON Schemas of the documents, generated from the types.

use schemars::{JsonSchema, schema_for};
use serde_json::Value;

use crate::{
    catalogue, change, checkup, claim, comparison, config, crash, diagnosis, experiment, facts, finding,
    knob, lever, plan, probe, profile, record, run_list, sample, server, summary, tpcc_lint, watch, work,
};

/// All documents, each with its file name (without `.schema.json`) and its schema.
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("plan", of::<plan::Plan>()),
        ("manifest", of::<record::Manifest>()),
        ("interval", of::<record::Interval>()),
        ("event", of::<record::Event>()),
        ("sample", of::<sample::Sample>()),
        ("summary", of::<summary::Summary>()),
        ("comparisons", of::<comparison::Comparisons>()),
        ("facts", of::<facts::FactSet>()),
        ("claim", of::<claim::Claim>()),
        ("claims", of::<catalogue::ClaimList>()),
        ("workloads", of::<catalogue::WorkloadList>()),
        ("experiments", of::<catalogue::ExperimentList>()),
        ("verdicts", of::<catalogue::VerdictList>()),
        ("tables", of::<work::TablesReport>()),
        ("disk", of::<work::DiskReport>()),
        ("links", of::<work::LinksReport>()),
        ("checkup", of::<checkup::Checkup>()),
        ("findings", of::<finding::Findings>()),
        ("server", of::<server::StartedServer>()),
        ("server-list", of::<server::ServerList>()),
        ("kept-data-list", of::<server::KeptDataList>()),
        ("host-status", of::<change::HostStatus>()),
        ("host-restore", of::<change::RestoreReport>()),
        ("crash", of::<crash::CrashReport>()),
        ("levers", of::<lever::LeverList>()),
        ("knobs", of::<knob::KnobList>()),
        ("probe", of::<probe::ProbeReport>()),
        ("experiment", of::<experiment::definition::Definition>()),
        ("design", of::<experiment::Design>()),
        ("slice", of::<experiment::Slice>()),
        ("verdict", of::<experiment::Verdict>()),
        ("classes", of::<experiment::classes::ClassComparison>()),
        ("class-round", of::<experiment::classes::ClassRound>()),
        ("factorial", of::<experiment::factorial::Factorial>()),
        ("factorial-run", of::<experiment::factorial::FactorialRun>()),
        ("proved", of::<experiment::proved::Proved>()),
        ("tpcc-lint", of::<tpcc_lint::TpccLint>()),
        ("runs", of::<run_list::RunList>()),
        ("config", of::<config::Configuration>()),
        ("profile", of::<profile::ProfileReport>()),
        ("diagnosis", of::<diagnosis::Diagnosis>()),
        ("watch", of::<watch::WatchManifest>()),
        ("watch-interval", of::<watch::WatchInterval>()),
    ]
}

fn of<T: JsonSchema>() -> Value {
    schema_for!(T).to_value()
}
