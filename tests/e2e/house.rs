//! The crates: layers, dependencies, system calls, the single ledger, and the documents that describe them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every crate and its layer.
const FLOORS: &[(&str, u8)] = &[
    ("mydyno", 8),
    ("mydyno-prove", 7),
    ("mydyno-compat", 7),
    ("mydyno-report", 7),
    ("mydyno-run", 6),
    ("mydyno-load", 5),
    ("mydyno-judge", 5),
    ("mydyno-levers", 5),
    ("mydyno-samples", 5),
    ("mydyno-facts", 4),
    ("mydyno-sandbox", 4),
    ("mydyno-probe", 4),
    ("mydyno-profile", 4),
    ("mydyno-workload", 4),
    ("mydyno-sim", 3),
    ("mydyno-tables", 3),
    ("mydyno-host", 3),
    ("mydyno-journal", 2),
    ("mydyno-settings", 2),
    ("mydyno-stats", 2),
    ("mydyno-linux", 1),
    ("mydyno-wire", 2),
    ("mydyno-model", 1),
];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Names and workspace dependencies (without those of tests) of all crates.
fn crates() -> BTreeMap<String, Vec<String>> {
    let mut crates = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let manifest = fs::read_to_string(entry.unwrap().path().join("Cargo.toml")).unwrap();
        let (mut section, mut name, mut dependencies) = (String::new(), String::new(), Vec::new());
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']).to_owned();
            }
            let key = line.split(['.', '=', ' ']).next().unwrap_or("");
            match section.as_str() {
                "package" if line.starts_with("name = ") => {
                    name = line.trim_start_matches("name = ").trim_matches('"').to_owned();
                }
                "dependencies" | "build-dependencies" if key.starts_with("mydyno-") => {
                    dependencies.push(key.to_owned());
                }
                _ => {}
            }
        }
        crates.insert(name, dependencies);
    }
    crates
}

#[test]
fn crates_import_downward_only() {
    let floor = |name: &str| {
        FLOORS
            .iter()
            .find(|(n, _)| *n == name)
            .unwrap_or_else(|| panic!("{name} has no layer here: add it to FLOORS and to ARCHITECTURE.md"))
            .1
    };
    let crates = crates();
    assert!(crates.len() >= 11, "{crates:?}");
    for (name, dependencies) in &crates {
        for dependency in dependencies {
            assert!(
                floor(dependency) < floor(name),
                "{name} (floor {}) imports {dependency} (floor {})",
                floor(name),
                floor(dependency)
            );
        }
    }
}

#[test]
fn load_and_samples_do_not_know_each_other_and_pure_crates_do_no_io() {
    let crates = crates();
    assert!(!crates["mydyno-load"].contains(&"mydyno-samples".to_owned()));
    assert_eq!(crates["mydyno-stats"], ["mydyno-model"]);
    assert_eq!(crates["mydyno-judge"], ["mydyno-model", "mydyno-settings", "mydyno-stats"]);
    assert_eq!(crates["mydyno-settings"], ["mydyno-model"]);
    assert_eq!(crates["mydyno-model"], Vec::<String>::new());
}

#[test]
fn simulations_serve_tests_and_examples_only() {
    for (name, dependencies) in crates() {
        assert!(
            !dependencies.contains(&"mydyno-sim".to_owned()),
            "{name} imports mydyno-sim into the product"
        );
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path().join("Cargo.toml");
        let manifest = fs::read_to_string(&path).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{}", path.display());
    }
}

#[test]
fn rustdoc_runs_for_the_crates_whose_documentation_has_examples() {
    let documented = |file: &str| {
        let text = fs::read_to_string(root().join(file)).unwrap();
        text.lines()
            .any(|line| ["/// ```", "//! ```"].iter().any(|begin| line.trim_start().starts_with(begin)))
    };
    let files = paths_of_the_source();
    for (name, _) in FLOORS.iter().filter(|(name, _)| *name != "mydyno") {
        let folder = format!("crates/{}", name.trim_start_matches("mydyno-"));
        let manifest = fs::read_to_string(root().join(&folder).join("Cargo.toml")).unwrap();
        let in_it = |file: &&String| file.starts_with(&format!("{folder}/src/")) && file.ends_with(".rs");
        let has_examples = files.iter().filter(in_it).any(|file| documented(file));
        // Without examples, rustdoc compiles the crate once more to find that out.
        assert_eq!(
            has_examples,
            !manifest.contains("doctest = false"),
            "{name}: `doctest` in its Cargo.toml"
        );
    }
}

#[test]
fn every_dependency_has_its_line_of_reason() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let reasons = fs::read_to_string(root().join("docs/journal/dependencies.md")).unwrap();
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    let names = section
        .lines()
        .filter_map(|line| line.split([' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#') && !name.starts_with("mydyno-"));
    for name in names {
        let named = reasons.lines().any(|line| {
            line.starts_with('|')
                && line
                    .split('|')
                    .nth(1)
                    .is_some_and(|cell| cell.split(',').any(|c| c.trim().trim_matches('`') == name))
        });
        assert!(named, "docs/journal/dependencies.md says nothing of {name}");
    }
}

#[test]
fn every_fact_of_the_table_of_settings_is_read_by_a_collector() {
    for row in mydyno_settings::table().rows() {
        let Some(fact) = &row.fact else { continue };
        let example = fact.replace('*', "name");
        assert!(
            mydyno_facts::catalogue::unit_of(&example).is_some(),
            "{}: no collector reads {fact}: add it to one of crates/facts/src/collectors, or leave `fact` out",
            row.id
        );
    }
}

/// Names and values of the ledger that nothing else in the source may list: variables of servers that can cost durability, and
/// values that do.
fn of_the_ledger() -> std::collections::BTreeSet<String> {
    let durability = mydyno_settings::ledger().iter().filter(|(_, row)| {
        matches!(
            row.touches,
            mydyno_model::claim::Touches::Durability | mydyno_model::claim::Touches::CrashSafety
        )
    });
    durability
        .flat_map(|(name, row)| {
            let values = row.costs.iter().filter(|value| value.contains(['=', '_', '-']) || value.len() > 6);
            std::iter::once(name.to_owned()).chain(values.cloned()).collect::<Vec<_>>()
        })
        .collect()
}

/// The string literals of the constants of a source text, one list a constant.
fn constants(text: &str) -> Vec<(String, Vec<String>)> {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for part in code.split("const ").skip(1) {
        let body = part.split(';').collect::<Vec<_>>();
        // The type of an array has a semicolon of its own.
        let end = body.iter().position(|piece| piece.matches('[').count() <= piece.matches(']').count());
        let body = body[..=end.unwrap_or(0).max(1).min(body.len() - 1)].join(";");
        let name = part.split(':').next().unwrap_or_default().trim().to_owned();
        found.push((name, body.split('"').skip(1).step_by(2).map(str::to_owned).collect()));
    }
    found
}

#[test]
fn the_ledger_in_knobs_is_the_only_one() {
    fn visit(folder: &Path, check: &mut dyn FnMut(&Path, &str)) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => visit(&path, check),
                false if path.extension().is_some_and(|e| e == "rs") => {
                    check(&path, &fs::read_to_string(&path).unwrap());
                }
                false => {}
            }
        }
    }
    let ledger = of_the_ledger();
    assert!(ledger.contains("sync_binlog") && ledger.contains("barrier=0"), "{ledger:?}");
    // Variables whose values a report of a crash shows: names without prices.
    let shown = [("crash/mod.rs", "DURABILITY")];
    let mut problems = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let crate_folder = entry.unwrap().path();
        if crate_folder.ends_with("settings") || !crate_folder.join("src").is_dir() {
            continue;
        }
        visit(&crate_folder.join("src"), &mut |path, text| {
            let is_test = path.iter().any(|part| part.to_string_lossy().starts_with("tests"));
            if is_test {
                return;
            }
            // A price has the form `durability: …`.
            for price in ["\"durability: ", "\"crash safety: "] {
                if text.contains(price) {
                    problems.push(format!("{}: a price of its own", path.display()));
                }
            }
            for (name, texts) in constants(text) {
                let priced: Vec<&String> = texts.iter().filter(|text| ledger.contains(*text)).collect();
                let is_list_of_prices = priced.len() >= 2 && priced.len() * 2 >= texts.len();
                let is_shown = shown.iter().any(|(file, list)| path.ends_with(file) && name == *list);
                if is_list_of_prices && !is_shown {
                    problems.push(format!("{}: const {name} lists {priced:?}", path.display()));
                }
            }
        });
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let own = constants("const A: &[&str] = &[\"sync_binlog\", \"barrier=0\"];\nconst B: [u8; 2] = [1, 2];");
    assert_eq!(own[0].1, ["sync_binlog", "barrier=0"]);
}

/// Paths of all files and folders of the source, from its root.
fn paths_of_the_source() -> Vec<String> {
    fn visit(folder: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !path.is_symlink() && !["target", ".git"].contains(&name.as_str()) {
                visit(&path, root, found);
            }
            found.push(name);
        }
    }
    let mut found = Vec::new();
    visit(&root(), &root(), &mut found);
    found
}

/// Paths of the source that a text names in backquotes or links to: none of the host, a pattern, an
/// option, or with a part in capitals that stands for a name.
fn named_paths(text: &str) -> Vec<&str> {
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_path = |name: &&str| {
        let ends = [".rs", ".toml", ".md", ".py", ".txt"].iter().any(|end| name.ends_with(end));
        (name.contains('/') || ends)
            && !name.starts_with(['/', '~', '$', '-', '.'])
            && !name.contains([' ', '*', '…', '=', ':', '<', '|', '&', '#'])
            && !name.split(['/', '.']).any(|part| part.len() > 1 && part.chars().all(char::is_uppercase))
    };
    quoted.chain(linked).filter(is_path).collect()
}

#[test]
fn the_files_that_the_guides_of_the_source_name_exist() {
    let known = paths_of_the_source();
    let exists = |name: &str| {
        let name = name.trim_end_matches('/');
        known
            .iter()
            .any(|path| path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
    };
    for guide in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(guide)).unwrap();
        let named = named_paths(&text);
        assert!(named.len() >= 15, "{guide} names only {named:?}");
        let missing: Vec<&str> = named.into_iter().filter(|name| !exists(name)).collect();
        assert!(missing.is_empty(), "{guide} names what is not there: {missing:?}");
    }
    assert_eq!(named_paths("`a/b.rs`, `/proc/x`, [c](d.md), `crates/NAME.rs`"), ["a/b.rs", "d.md"]);
}

#[test]
fn the_tests_that_guard_the_principles_exist() {
    let text = fs::read_to_string(root().join("docs/principles.md")).unwrap();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| **")).collect();
    assert!(rows.len() >= 9, "{rows:?}");
    let sources = paths_of_the_source().into_iter().filter(|path| path.ends_with(".rs"));
    let sources: String =
        sources.map(|path| fs::read_to_string(root().join(path)).unwrap_or_default()).collect();
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    for row in rows {
        let guards = row.rsplit(" | ").next().unwrap_or_default();
        let guards: Vec<&str> = guards.split('`').skip(1).step_by(2).collect();
        assert!(!guards.is_empty(), "no test guards {row}");
        for guard in guards {
            let exists = match guard.strip_prefix("make ") {
                Some(target) => makefile.contains(&format!("\n{target}:")),
                None => guard.starts_with("mydyno ") || sources.contains(&format!("fn {guard}()")),
            };
            assert!(exists, "docs/principles.md names {guard}, which does not exist: {row}");
        }
    }
}

#[test]
fn pages_of_the_journal_begin_with_their_decision() {
    // A table of reasons, and a page that a program writes.
    let others = ["dependencies.md", "statistics-measured.md"];
    let pages = paths_of_the_source().into_iter().filter(|path| path.starts_with("docs/journal/"));
    let pages: Vec<String> = pages.filter(|path| !others.iter().any(|other| path.ends_with(other))).collect();
    assert!(pages.len() >= 20, "{pages:?}");
    for page in pages {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        let first = text.lines().skip(1).find(|line| !line.is_empty()).unwrap_or_default();
        assert!(first.starts_with("**Decision"), "{page} begins with {first:?}");
    }
}

/// Literals of a source text, without its tests, that begin as an HTML or SVG element does.
fn elements_in_literals(text: &str) -> Vec<&str> {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let begins = |line: &&str| {
        line.split("\"<").skip(1).any(|rest| {
            let name = rest.find([' ', '>']).map_or("", |end| &rest[..end]);
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        })
    };
    code.lines().filter(begins).collect()
}

#[test]
fn reports_are_made_by_maud_which_escapes() {
    let sources = paths_of_the_source().into_iter().filter(|path| {
        path.starts_with("crates/report/src/") && path.ends_with(".rs") && !path.contains("tests")
    });
    let mut problems = Vec::new();
    for path in sources {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        problems
            .extend(elements_in_literals(&text).into_iter().map(|line| format!("{path}: {}", line.trim())));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(elements_in_literals("format!(\"<rect x={x}>\")\nformat!(\"<{address}>\")").len(), 1);
}

/// Doc comments of a text that name no subject: those that begin with a question word.
fn without_a_subject(text: &str) -> Vec<&str> {
    let docs =
        |line: &&str| ["/// What ", "//! What "].iter().any(|begin| line.trim_start().starts_with(begin));
    text.lines().filter(docs).collect()
}

#[test]
fn doc_comments_name_their_subject() {
    let sources = paths_of_the_source().into_iter().filter(|path| path.ends_with(".rs"));
    let mut problems = Vec::new();
    for path in sources {
        let text = fs::read_to_string(root().join(&path)).unwrap_or_default();
        problems.extend(without_a_subject(&text).into_iter().map(|line| format!("{path}: {}", line.trim())));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(without_a_subject("    /// What it does.\n// What\n/// The work.").len(), 1);
}

#[test]
fn architecture_md_shows_every_crate_with_its_layer() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let shown: BTreeMap<String, u8> = text
        .lines()
        .filter_map(|line| line.strip_prefix("├─ ").or_else(|| line.strip_prefix("└─ ")))
        .filter_map(|line| {
            let (name, rest) = line.split_once('/')?;
            Some((name.to_owned(), rest.split_whitespace().next()?.parse().ok()?))
        })
        .collect();
    let crates: BTreeMap<String, u8> = crates()
        .into_keys()
        .map(|name| {
            let floor = FLOORS.iter().find(|(n, _)| *n == name).unwrap().1;
            (name.strip_prefix("mydyno-").unwrap_or(&name).to_owned(), floor)
        })
        .collect();
    assert_eq!(shown, crates);
}

/// Places that call the kernel beside `crates/linux`, and the reason: folder or file below `crates`.
const OTHER_SYSTEM_CALLS: &[(&str, &str)] = &[
    ("load/src/clock.rs", "the hot path: the clock is read around each statement"),
    ("load/src/sys.rs", "the hot path: sockets, epoll and eventfd of the event loop"),
    ("wire/src/net.rs", "sockets of a connection, with deadlines"),
    (
        "wire/src/target/environment.rs",
        "one geteuid for the client's own files; the crate depends on no crate of the host",
    ),
    ("probe/src", "the calls are what is measured"),
    ("host/src/process.rs", "between fork and exec, where nothing may allocate"),
];

/// The system calls in a source text: functions of `libc`, and all of `rustix`. Constants, types and macros of `libc` are none.
fn system_calls(text: &str) -> Vec<String> {
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut found = Vec::new();
    for line in code.lines().map(|line| line.split("//").next().unwrap_or_default()) {
        found.extend(line.contains("rustix::").then(|| line.trim().to_owned()));
        for rest in line.split("libc::").skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let is_call = rest[name.len()..].starts_with('(')
                && !["major", "minor", "makedev"].contains(&name.as_str());
            let imported = line.trim_start().starts_with("use ") && name.is_empty();
            found.extend((is_call && !name.starts_with(char::is_uppercase)).then_some(name));
            // A list of imports may hide functions among types and constants.
            let names = rest.trim_matches(['{', '}', ';']).split(',').map(str::trim);
            let is_function = |n: &&str| {
                !n.is_empty() && !n.ends_with("_t") && n.chars().all(|c| c.is_lowercase() || c == '_')
            };
            found.extend(names.filter(|_| imported).filter(is_function).map(str::to_owned));
        }
    }
    found
}

#[test]
fn the_kernel_is_called_in_one_crate_and_in_named_places() {
    let allowed = |path: &str| OTHER_SYSTEM_CALLS.iter().any(|(place, _)| path.starts_with(place));
    let sources = paths_of_the_source().into_iter().filter_map(|path| {
        let path = path.strip_prefix("crates/")?.to_owned();
        let is_test = path.split('/').any(|part| ["tests", "examples", "tests.rs"].contains(&part));
        (path.ends_with(".rs") && !is_test && !path.starts_with("linux/")).then_some(path)
    });
    let mut used = BTreeMap::new();
    for path in sources {
        let calls = system_calls(&fs::read_to_string(root().join("crates").join(&path)).unwrap());
        if !calls.is_empty() {
            used.insert(path, calls);
        }
    }
    let strays: Vec<_> = used.iter().filter(|(path, _)| !allowed(path)).collect();
    assert!(strays.is_empty(), "system calls outside crates/linux: {strays:#?}");
    for (place, _) in OTHER_SYSTEM_CALLS {
        assert!(used.keys().any(|path| path.starts_with(place)), "{place} calls the kernel no more");
    }
    assert_eq!(system_calls("libc::open(a); libc::EINVAL; libc::WIFEXITED(s); // libc::read(b)"), ["open"]);
    assert_eq!(system_calls("use libc::{pid_t, kill, SIGINT};"), ["kill"]);
}
