//! The collectors, one file each.

use crate::collector::Collector;

pub mod access;
pub mod account_traps;
pub mod activity;
pub mod authority;
mod backing;
pub mod boot_files;
mod certificates;
pub mod cgroup;
mod client_files;
pub mod clients;
mod counted;
pub mod cpu;
pub mod datadirs;
mod deadlock;
pub mod declared;
mod definers;
pub mod device;
mod dump_folders;
pub mod error_log;
mod error_log_accounts;
mod error_log_kinds;
mod events_off;
pub mod exposure;
pub mod file_system;
pub mod files;
mod foreign;
mod functions_declared;
mod grant_patterns;
pub mod health;
pub mod innodb;
pub mod kernel;
pub mod keyring;
mod lock_holders;
pub mod locks;
pub mod memory;
mod neighbours;
pub mod network;
pub mod objects;
pub mod options;
pub mod package_account;
mod passwords;
pub mod performance_schema;
pub mod places;
pub mod privileges;
pub mod process;
pub mod process_memory;
pub mod reclaim;
pub mod refused;
pub mod registered;
mod relations;
pub mod remnants;
mod replication;
mod replication_filters;
mod replication_unused;
pub mod rotation;
mod routine_calls;
pub mod schema;
pub mod server;
pub mod services;
mod session_list;
pub mod session_memory;
pub mod sessions;
pub mod set_up;
mod shared_memory;
pub mod slow_log;
mod slow_log_quotes;
mod slow_log_text;
mod statement_digest;
mod statement_hints;
mod statement_joins;
mod statement_kinds;
mod statement_lists;
mod statement_sums;
mod statement_tables;
mod statement_vain;
pub mod statements;
pub mod status;
pub mod storage;
pub mod stored_code;
mod stored_text;
pub mod sysctl;
pub mod thp;
mod trigger_code;
mod triggers;
pub mod unit;
pub mod upkeep;
mod views;
pub mod virtualisation;

/// All of them, in the order in which their facts stand in a fact set.
pub static ALL: &[&Collector] = &[
    &kernel::COLLECTOR,
    &virtualisation::COLLECTOR,
    &cpu::COLLECTOR,
    &memory::COLLECTOR,
    &thp::COLLECTOR,
    &sysctl::COLLECTOR,
    &activity::COLLECTOR,
    &health::COLLECTOR,
    &reclaim::COLLECTOR,
    &services::COLLECTOR,
    &boot_files::COLLECTOR,
    &network::COLLECTOR,
    &cgroup::COLLECTOR,
    &process::COLLECTOR,
    &process_memory::COLLECTOR,
    &unit::COLLECTOR,
    &storage::COLLECTOR,
    &upkeep::COLLECTOR,
    &files::COLLECTOR,
    &places::COLLECTOR,
    &remnants::COLLECTOR,
    &datadirs::COLLECTOR,
    &rotation::COLLECTOR,
    &exposure::COLLECTOR,
    &options::COLLECTOR,
    &server::COLLECTOR,
    &innodb::COLLECTOR,
    &sessions::COLLECTOR,
    &clients::COLLECTOR,
    &clients::settings::COLLECTOR,
    &locks::COLLECTOR,
    &objects::COLLECTOR,
    &declared::COLLECTOR,
    &registered::COLLECTOR,
    &stored_code::COLLECTOR,
    &access::COLLECTOR,
    &authority::COLLECTOR,
    &keyring::COLLECTOR,
    &privileges::COLLECTOR,
    &account_traps::COLLECTOR,
    &package_account::COLLECTOR,
    &refused::COLLECTOR,
    &set_up::COLLECTOR,
    &error_log::COLLECTOR,
    &session_memory::COLLECTOR,
    &performance_schema::COLLECTOR,
    &statements::COLLECTOR,
    &slow_log::COLLECTOR,
    &schema::COLLECTOR,
    &status::COLLECTOR,
];
