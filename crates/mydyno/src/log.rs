//! Diagnostics for `--log` and `MYDYNO_LOG`: events and spans of the crates, on standard error.

use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Crates that write diagnostics.
const CRATES: [&str; 5] = ["facts", "journal", "run", "sandbox", "wire"];

/// Levels by crate.
#[derive(Debug, Clone)]
pub struct Filter(Targets);

impl FromStr for Filter {
    type Err = String;

    /// Parses a level (`debug`), or a list of `CRATE=LEVEL` and a level for the others (`wire=trace,info`).
    fn from_str(text: &str) -> Result<Self, String> {
        let mut targets = Targets::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, level) = match part.split_once('=') {
                Some((name, level)) => (Some(name), level),
                None if CRATES.contains(&part) => (Some(part), "trace"),
                None => (None, part),
            };
            let level: LevelFilter = level
                .parse()
                .map_err(|_| format!("{level:?} is not a level: off, error, warn, info, debug or trace"))?;
            targets = match name {
                None => targets.with_default(level),
                Some(name) if CRATES.contains(&name) => targets.with_target(format!("mydyno_{name}"), level),
                Some(name) => {
                    return Err(format!("no crate {name:?} writes diagnostics: {}", CRATES.join(", ")));
                }
            };
        }
        Ok(Self(targets))
    }
}

/// Starts writing diagnostics. A span is written when it closes, with its duration.
pub fn start(filter: Option<&Filter>) {
    let Some(Filter(targets)) = filter else { return };
    let format = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE);
    // Setting the subscriber fails only if there is one already, and no other place sets one.
    let _ = tracing_subscriber::registry().with(format).with(targets.clone()).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_given_for_all_crates_or_for_one() {
        let enabled = |filter: &str, target: &str| {
            filter.parse::<Filter>().unwrap().0.would_enable(target, &tracing::Level::DEBUG)
        };
        assert!(enabled("debug", "mydyno_wire::client") && !enabled("info", "mydyno_wire::client"));
        assert!(enabled("wire=debug", "mydyno_wire") && !enabled("wire=debug", "mydyno_journal"));
        assert!(enabled("journal", "mydyno_journal::journal") && enabled("wire=off,debug", "mydyno_journal"));
        for (wrong, named) in [("loud", "loud"), ("wire=loud", "trace"), ("wine=debug", "sandbox")] {
            assert!(wrong.parse::<Filter>().unwrap_err().contains(named), "{wrong}");
        }
    }
}
