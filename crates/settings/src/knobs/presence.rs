//! Whether a release has a knob, derived from the eleven servers that were queried and from notes on releases between
//! them.

use mydyno_model::knob::{KnobHistory, KnobOn};

use super::Knobs;
use super::server::Server;
use super::target::{Target, Version};

/// Whether a release has a knob.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Presence<'k> {
    /// The release has it.
    Has {
        /// The nearest queried server that has it; `None` where only the notes say so.
        on: Option<&'k KnobOn>,
        /// The server is of the same series, or both neighbours agree, so its ranges apply.
        same: bool,
    },
    /// The release does not have it.
    Absent {
        /// The last earlier server that had it.
        last: Option<&'k KnobOn>,
        /// The first later server that has it.
        next: Option<&'k KnobOn>,
    },
    /// Its neighbours differ, and there is no note.
    Undecided {
        /// The neighbour that has it.
        on: &'k KnobOn,
        /// Whether that neighbour is the older one.
        older: bool,
    },
}

impl Knobs {
    /// Servers of a family, oldest first.
    pub fn of_family<'k>(&'k self, family: &'k str) -> impl DoubleEndedIterator<Item = &'k Server> {
        self.servers().iter().filter(move |server| server.family() == family)
    }

    /// The queried server nearest to a release: of its series, else the newest before it, else the oldest.
    pub fn nearest_server<'k>(&'k self, target: &'k Target) -> Option<&'k Server> {
        let series = target.version.series();
        let before = self.of_family(&target.family).rfind(|server| server.series() <= series);
        before.or_else(|| self.of_family(&target.family).next())
    }

    /// Whether a release has a knob.
    pub fn presence<'k>(&'k self, name: &str, target: &Target) -> Presence<'k> {
        let Some(knob) = self.get(name) else { return Presence::Absent { last: None, next: None } };
        let series = target.version.series();
        let seen = |server: &Server| knob.servers.iter().find(|on| on.engine == server.engine);
        let family: Vec<&Server> = self.of_family(&target.family).collect();
        let before: Vec<&Server> = family.iter().copied().filter(|s| s.series() <= series).collect();
        let after: Vec<&Server> = family.iter().copied().filter(|s| s.series() > series).collect();
        let last = before.iter().rev().find_map(|s| seen(s));
        let next = after.iter().find_map(|s| seen(s));
        let lacks = Presence::Absent { last, next };
        let history = knob.history.iter().find(|history| history.family == target.family);
        // A note about the removal does not imply the introduction: the release before must have had it.
        let earlier = family.iter().rev().find(|server| server.release() <= target.version);
        let had = earlier.is_some_and(|server| seen(server).is_some());
        match history.and_then(|history| stated(history, target.version)) {
            Some(true) if had || history.is_some_and(|history| history.since.is_some()) => {
                let here = before.last().filter(|s| s.series() == series).and_then(|s| seen(s));
                return Presence::Has { on: here.or(last).or(next), same: here.is_some() };
            }
            Some(false) => return lacks,
            Some(true) | None => {}
        }
        let below = before.last().map(|server| (*server, seen(server)));
        let above = after.first().map(|server| (*server, seen(server)));
        match (below, above) {
            (Some((_, Some(a))), Some((_, Some(b)))) => {
                let here = below.is_some_and(|(server, _)| server.series() == series);
                Presence::Has { on: Some(a), same: here || a.seen == b.seen }
            }
            (Some((server, Some(on))), above) => {
                if server.series() == series || above.is_none() {
                    Presence::Has { on: Some(on), same: server.series() == series }
                } else {
                    Presence::Undecided { on, older: true }
                }
            }
            (Some((server, None)), Some((_, Some(on)))) => {
                let here = server.series() == series;
                if here && target.version <= server.release() {
                    lacks
                } else {
                    Presence::Undecided { on, older: false }
                }
            }
            (None, Some((_, Some(on)))) => Presence::Undecided { on, older: false },
            _ => lacks,
        }
    }
}

/// The statements of the notes on a release; `None` without a note.
fn stated(history: &KnobHistory, version: Version) -> Option<bool> {
    let of = |text: &Option<String>| text.as_deref().and_then(Version::parse);
    let (since, removed, still) = (of(&history.since), of(&history.removed), of(&history.still_in));
    if removed.is_some_and(|removed| version >= removed) || since.is_some_and(|since| version < since) {
        return Some(false);
    }
    let until_now = still.is_some_and(|still| version <= still && since.is_none_or(|since| version >= since));
    (until_now || removed.is_some() || (since.is_some() && still.is_none())).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knobs() -> Knobs {
        let server = |engine: &str, version: &str, names: &[&str]| {
            let knobs: String = names
                .iter()
                .map(|n| format!("{n} = {{ type = \"integer\", option = \"required\", variable = \"global\", dynamic = true }}\n"))
                .collect();
            format!(
                "engine = \"{engine}\"\nversion = \"{version}\"\n[rules]\ncase_sensitive = true\nabbreviations = \"refused\"\n\
                 suffixes = \"KMG\"\nnegative = \"smallest\"\nempty_number = \"refused\"\ngroups = [\"mysqld\"]\nfiles = []\n[knobs]\n{knobs}"
            )
        };
        let files = [
            ("servers/mysql-5.7.toml", server("mysql-5.7", "5.7.22", &["always", "went", "between"])),
            ("servers/mysql-8.0.toml", server("mysql-8.0", "8.0.12", &["always", "went_later"])),
            ("servers/mysql-9.7.toml", server("mysql-9.7", "9.7.4", &["always", "came", "came_noted"])),
            ("history/mysql.toml", "[came_noted]\nsince = \"8.0.30\"\n[between]\nremoved = \"8.0.3\"\n[brief]\nsince = \"8.0.14\"\nremoved = \"8.4.0\"\n".to_owned()),
        ];
        Knobs::read(files.iter().map(|(f, t)| (*f, t.as_str()))).unwrap()
    }

    fn reported(name: &str, target: &str) -> String {
        match knobs().presence(name, &target.parse().unwrap()) {
            Presence::Has { on, same } => format!("has {} {same}", on.map_or("-", |on| &on.engine)),
            Presence::Absent { last, next } => {
                format!("lacks {} {}", last.map_or("-", |on| &on.engine), next.map_or("-", |on| &on.engine))
            }
            Presence::Undecided { on, older } => format!("undecided {} {older}", on.engine),
        }
    }

    #[test]
    fn servers_that_were_asked_decide_for_their_series_and_what_lies_between_equals() {
        for (name, target, is) in [
            ("always", "mysql-8.0", "has mysql-8.0 true"),
            ("always", "mysql-8.4", "has mysql-8.0 true"),
            ("always", "mysql-9.7.4", "has mysql-9.7 true"),
            ("always", "mysql-10.0", "has mysql-9.7 false"),
            ("went", "mysql-5.7.44", "has mysql-5.7 true"),
            ("went", "mysql-8.0.12", "lacks mysql-5.7 -"),
            ("went", "mysql-9.7", "lacks mysql-5.7 -"),
            ("nowhere", "mysql-9.7", "lacks - -"),
            ("always", "mariadb-10.11", "lacks - -"),
        ] {
            assert_eq!(reported(name, target), is, "{name} {target}");
        }
    }

    #[test]
    fn between_servers_that_differ_it_is_undecided_unless_the_notes_tell() {
        for (name, target, is) in [
            ("went_later", "mysql-8.4", "undecided mysql-8.0 true"),
            ("came", "mysql-8.4", "undecided mysql-9.7 false"),
            ("came", "mysql-8.0.36", "undecided mysql-9.7 false"),
            ("came", "mysql-8.0.12", "lacks - mysql-9.7"),
            ("came_noted", "mysql-8.0.36", "has mysql-9.7 false"),
            ("came_noted", "mysql-8.0.29", "lacks - mysql-9.7"),
            ("between", "mysql-8.0.1", "has mysql-5.7 false"),
            ("between", "mysql-8.0.3", "lacks mysql-5.7 -"),
            ("brief", "mysql-8.0.20", "has - false"),
            ("brief", "mysql-8.4.0", "lacks - -"),
            ("brief", "mysql-5.7", "lacks - -"),
        ] {
            assert_eq!(reported(name, target), is, "{name} {target}");
        }
    }
}
