//! The fuzz targets, apart from their drivers: a compiler of the nightly channel with coverage (`fuzz_targets/`), the
//! mutating loop of `examples/fuzz.rs`, and a test that runs every seed. Each entry takes any bytes, panics where a law
//! is broken, and gives what became of them: inputs with an outcome that was not seen before are worth keeping.

pub mod handshakes;
pub mod login_paths;
pub mod option_files;
pub mod packets;
pub mod results;

/// The outcome of an input.
pub type Outcome = String;

/// An entry.
pub type Run = fn(&[u8]) -> Outcome;

/// All of them, by name.
pub const ENTRIES: [(&str, Run); 5] = [
    ("packets", packets::run),
    ("handshakes", handshakes::run),
    ("results", results::run),
    ("option_files", option_files::run),
    ("login_paths", login_paths::run),
];
