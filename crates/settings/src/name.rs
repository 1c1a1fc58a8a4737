//! Names of server variables as people write them.

/// The effect of an option's prefix on its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// The value counts as written.
    Value,
    /// `skip-` and `disable-`: the option is off, whatever the value.
    Off,
    /// `enable-`: the option is on.
    On,
}

/// Prefixes that servers accept before an option's name (mysys/my_getopt.c).
const PREFIXES: [(&str, Switch); 6] = [
    ("loose_", Switch::Value),
    ("skip_", Switch::Off),
    ("enable_", Switch::On),
    ("disable_", Switch::Off),
    ("maximum_", Switch::Value),
    ("autoset_", Switch::Value),
];

/// A variable's name in lower case with underscores, without prefixes, and what these do with its value.
pub fn bare_name(name: &str) -> (String, Switch) {
    let name = name.trim().trim_start_matches("--").replace('-', "_").to_ascii_lowercase();
    let (mut bare, mut switch) = (name.as_str(), Switch::Value);
    for (prefix, means) in PREFIXES {
        if let Some(rest) = bare.strip_prefix(prefix) {
            bare = rest;
            switch = if means == Switch::Value { switch } else { means };
        }
    }
    (bare.to_owned(), switch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_taken_off_and_switch_an_option() {
        let of = |name| bare_name(name);
        assert_eq!(of("loose-skip-Innodb_doublewrite"), ("innodb_doublewrite".to_owned(), Switch::Off));
        assert_eq!(of("sync-binlog"), ("sync_binlog".to_owned(), Switch::Value));
        assert_eq!(of("enable_log_bin"), ("log_bin".to_owned(), Switch::On));
    }
}
