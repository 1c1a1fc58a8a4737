//! Conflicts over a setting: of two findings that request one, the more urgent is written, and the other is mentioned
//! in a comment.

use mydyno_model::claim::StepKind;

/// The setting that a step changes: its form, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name(StepKind, String);

impl Name {
    /// `None` for a step that sets nothing by name.
    fn of(kind: StepKind, text: &str) -> Option<Self> {
        let left = || text.split_once('=').map_or(text, |(left, _)| left).trim();
        let name = match kind {
            // Hyphens and underscores are equivalent in option files; sysctl(8) accepts slashes for dots.
            StepKind::Cnf => left().to_ascii_lowercase().replace('-', "_"),
            StepKind::Sysctl => left().replace('/', "."),
            StepKind::Systemd => match left() {
                // Each of these lines adds to the earlier ones.
                adding if adding.starts_with("Exec") || adding.starts_with("Environment") => text.to_owned(),
                name => name.to_owned(),
            },
            StepKind::Sql => {
                left().strip_prefix("SET GLOBAL ").filter(|_| text.contains('='))?.to_ascii_lowercase()
            }
            // Type, path, …: tmpfiles.d(5).
            StepKind::Tmpfiles => text.split_whitespace().take(2).collect::<Vec<_>>().join(" "),
            StepKind::Kernel => left().to_owned(),
            StepKind::Udev | StepKind::Shell => text.trim().to_owned(),
            StepKind::Text => return None,
        };
        Some(Self(kind, name))
    }
}

/// A step that another finding's step replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The claim whose step is written.
    pub by: String,
    /// That step, if it differs.
    pub otherwise: Option<String>,
}

/// The settings of a folder of remedies.
#[derive(Debug, Default)]
pub struct Settings(Vec<(Name, String, String)>);

impl Settings {
    /// Registers a step, or returns the step that already sets its setting. Steps of one claim do not conflict: some
    /// settings are changed in stages.
    pub fn take(&mut self, kind: StepKind, claim: &str, text: &str) -> Option<Taken> {
        let name = Name::of(kind, text)?;
        if let Some((_, by, written)) = self.0.iter().find(|(known, by, _)| *known == name && by != claim) {
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            let otherwise = (squeezed(written) != squeezed(text)).then(|| written.clone());
            return Some(Taken { by: by.clone(), otherwise });
        }
        self.0.push((name, claim.to_owned(), text.to_owned()));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_one_however_it_is_written() {
        for (kind, one, other) in [
            (StepKind::Sysctl, "vm.swappiness = 1", "vm/swappiness=10"),
            (StepKind::Cnf, "sync_binlog = 1", "Sync-Binlog=0"),
            (StepKind::Cnf, "skip-name-resolve", "skip_name_resolve = ON"),
            (StepKind::Systemd, "LimitNOFILE=65535", "LimitNOFILE=200000"),
            (StepKind::Sql, "SET GLOBAL sync_binlog = 1", "SET GLOBAL Sync_Binlog=7"),
            (StepKind::Tmpfiles, "w /sys/kernel/mm/ksm/run - - - - 2", "w /sys/kernel/mm/ksm/run - - - - 0"),
        ] {
            let mut settings = Settings::default();
            assert_eq!(settings.take(kind, "first", one), None);
            let taken = settings.take(kind, "second", other).unwrap();
            assert_eq!(taken.by, "first", "{other}");
            assert_eq!(taken.otherwise.as_deref(), Some(one));
        }
    }

    #[test]
    fn what_adds_up_and_what_is_done_in_stages_is_all_written() {
        let mut settings = Settings::default();
        for (kind, claim, text) in [
            (StepKind::Systemd, "a", "Environment=A=1"),
            (StepKind::Systemd, "b", "Environment=B=1"),
            (StepKind::Sql, "a", "SET GLOBAL gtid_mode = OFF_PERMISSIVE"),
            (StepKind::Sql, "a", "SET GLOBAL gtid_mode = ON_PERMISSIVE"),
            (StepKind::Sql, "a", "ALTER TABLE t ENGINE = InnoDB"),
            (StepKind::Sql, "b", "ALTER TABLE t ENGINE = InnoDB"),
            (StepKind::Text, "a", "x = 1"),
            (StepKind::Text, "b", "x = 1"),
        ] {
            assert_eq!(settings.take(kind, claim, text), None, "{claim} {text}");
        }
    }

    #[test]
    fn the_same_line_of_two_claims_is_no_conflict() {
        let mut settings = Settings::default();
        settings.take(StepKind::Systemd, "a", "OOMScoreAdjust=-250");
        let taken = settings.take(StepKind::Systemd, "b", "OOMScoreAdjust=-250").unwrap();
        assert_eq!(taken, Taken { by: "a".to_owned(), otherwise: None });
    }
}
