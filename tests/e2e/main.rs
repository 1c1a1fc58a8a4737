//! The binary as its users meet it, against real servers.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod audit;
mod bench;
mod bench_ends;
mod bench_guard;
#[allow(dead_code)]
#[path = "../../crates/wire/tests/it/certificates.rs"]
mod certificates;
mod checkup;
mod clock;
#[path = "../command_lines.rs"]
mod command_lines;
mod compare;
mod compat;
mod compat_fileio;
mod compat_many;
mod compat_people;
mod compat_twins;
mod config_file;
mod convergence;
mod disk;
mod docs;
#[allow(dead_code)]
#[path = "../engines/engine.rs"]
mod engine;
mod engines;
mod engines_audit;
mod engines_compat;
mod engines_memory;
mod engines_options;
mod engines_remedies;
mod engines_tpcc;
mod engines_watch;
mod factors;
#[allow(dead_code)]
#[path = "../../crates/wire/tests/it/fake.rs"]
mod fake;
mod false_alarms;
mod faults;
mod faults_hours;
mod faults_scenes;
mod fix;
mod fixture;
mod home;
mod host;
mod hostile;
mod house;
mod kept_data;
mod kills;
mod knobs;
mod lacking;
mod levers;
mod load;
mod mixes;
mod observe;
mod own_session;
mod passwords;
mod probe;
mod profile;
mod prove;
mod prove_host;
mod prove_on_server;
mod prove_responses;
#[path = "../pulse.rs"]
mod pulse;
mod rogue;
mod runs;
mod server;
mod shape;
mod shell;
mod ssh;
mod surroundings;
mod tpcc;
mod tpcc_lint;
#[path = "../until.rs"]
mod until;
mod unusable;
mod usage;
mod watch;
#[path = "../whole_host.rs"]
mod whole_host;
