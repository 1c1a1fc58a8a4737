//! The reference documents exactly the commands, options and types that there are. `make docs` writes the generated pages anew.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::command_lines;
use crate::home::Home;
use crate::house::root;

fn generated(path: &str, text: &str) {
    let path = root().join("docs/reference").join(path);
    if std::env::var_os("MYDYNO_WRITE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{} is out of date: run `make docs`", path.display());
}

fn mydyno(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mydyno"))
        .args(args)
        .env_remove("COLUMNS")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn schemas_of_the_documents_are_those_of_the_types() {
    for (name, schema) in mydyno_model::schema::all() {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        generated(&format!("schemas/{name}.schema.json"), &text);
    }
}

/// Commands below a command, as its help lists them.
fn commands(help: &str) -> Vec<String> {
    let Some(list) = help.split("\nCommands:\n").nth(1) else { return Vec::new() };
    list.lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

fn describe(path: &[String], text: &mut String) {
    let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
    args.push("--help");
    let help = mydyno(&args);
    let title = ["mydyno".to_owned()].iter().chain(path).cloned().collect::<Vec<_>>().join(" ");
    text.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", help.trim_end()));
    for command in commands(&help) {
        let below: Vec<String> = path.iter().cloned().chain([command]).collect();
        describe(&below, text);
    }
}

#[test]
fn every_command_and_option_is_in_the_reference() {
    let mut text = String::from("# Commands\n\nGenerated from the program's own help by `make docs`.\n");
    describe(&[], &mut text);
    assert!(text.contains("## mydyno bench") && text.contains("--connections"));
    generated("commands.md", &text);
}

#[test]
fn every_workload_is_in_the_reference() {
    let list: Value = serde_json::from_str(&mydyno(&["workloads", "--json"])).unwrap();
    let mut text = String::from("# Workloads\n\nGenerated from the catalogue by `make docs`.\n");
    for workload in list["workloads"].as_array().unwrap() {
        let field = |name: &str| workload[name].as_str().unwrap().to_owned();
        text.push_str(&format!(
            "\n## {}\n\n{}. A transaction is {}.\n\n| option | value | default | meaning |\n|---|---|---|---|\n",
            field("name"),
            field("summary"),
            field("transaction")
        ));
        for option in workload["options"].as_array().unwrap() {
            let default = match &option["default"] {
                Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
                Value::String(word) => word.clone(),
                other => other.to_string(),
            };
            text.push_str(&format!(
                "| `--{}` | {} | {default} | {} |\n",
                option["name"].as_str().unwrap(),
                option["form"].as_str().unwrap().replace('|', " or "),
                option["help"].as_str().unwrap()
            ));
        }
    }
    generated("workloads.md", &text);
}

#[test]
fn every_claim_is_in_the_reference() {
    let list: Value = serde_json::from_str(&mydyno(&["claims", "--json"])).unwrap();
    let mut text = String::from(
        "# Claims\n\nGenerated from the catalogue by `make docs`; `mydyno claims ID` explains one with its sources and remedy.\n",
    );
    let mut area = "";
    for claim in list["claims"].as_array().unwrap() {
        let field = |name: &str| claim[name].as_str().unwrap();
        if field("area") != area {
            area = field("area");
            text.push_str(&format!(
                "\n## {area}\n\n| claim | severity | what ought to hold |\n|---|---|---|\n"
            ));
        }
        text.push_str(&format!(
            "| `{}` | {} | {} |\n",
            field("id"),
            field("severity"),
            field("title").replace('|', "\\|")
        ));
    }
    generated("claims.md", &text);
}

#[test]
fn every_fact_is_in_the_reference() {
    let text = format!(
        "# Facts\n\nGenerated from the catalogue by `make docs`. A part in capitals stands for a name. Kernel settings of the family `host.sysctl.NAME` are those that the collector lists.\n\n{}",
        mydyno_facts::catalogue::markdown()
    );
    generated("facts.md", &text);
}

#[test]
fn the_readme_names_every_verb() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for verb in commands(&mydyno(&["--help"])) {
        assert!(
            readme.contains(&format!("`mydyno {verb}")),
            "README.md does not name `mydyno {verb}`: add a row to its table of commands"
        );
    }
}

/// Verbs whose own source prints no document, and the reason.
const WITHOUT_DOCUMENT: &[(&str, &str)] = &[
    ("compare", "proving.rs prints the design and the verdict"),
    ("completions", "the answer is a script"),
    ("demo", "bench prints the summary"),
    ("man", "the answer is a page"),
    ("on_demand", "no verb: it defines the options of one"),
    ("prove", "proving.rs prints the design and the verdict"),
];

#[test]
fn every_verb_answers_json_by_a_document() {
    for entry in fs::read_dir(root().join("crates/mydyno/src/verbs")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let files = match path.is_dir() {
            true => fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect(),
            false => vec![path],
        };
        let texts = files.iter().filter(|file| file.is_file()).map(|file| fs::read_to_string(file).unwrap());
        let prints = texts.into_iter().any(|text| text.contains("to_json()"));
        let is_listed = name == "mod" || WITHOUT_DOCUMENT.iter().any(|(verb, _)| *verb == name);
        assert!(
            prints != is_listed,
            "{name}: where `ui.json` is set, print a document of crates/model by `to_json()`; a verb that has none is \
             listed in WITHOUT_DOCUMENT with its reason"
        );
    }
}

#[test]
fn commands_that_claims_name_are_there() {
    let verbs = commands(&mydyno(&["--help"]));
    for area in fs::read_dir(root().join("claims")).unwrap().map(|entry| entry.unwrap().path()) {
        for path in fs::read_dir(area).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            for rest in fs::read_to_string(&path).unwrap().split("mydyno ").skip(1) {
                let word = rest.split(|c: char| !(c.is_alphanumeric() || c == '-')).next().unwrap();
                assert!(verbs.iter().any(|verb| verb == word), "{}: mydyno {word}", path.display());
            }
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let tops = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
    let mut pages: Vec<PathBuf> = tops.iter().map(|page| root().join(page)).collect();
    command_lines::below(&root().join("docs"), &mut pages);
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap();
            let elsewhere =
                target.is_empty() || target.contains("://") || target.contains(char::is_whitespace);
            let there = elsewhere || page.parent().unwrap().join(target).exists();
            assert!(there, "{} links to {target}", page.display());
        }
    }
}

/// Verbs whose commands need no server, change nothing of the host and take a moment.
const AT_ONCE: &[&str] = &["claims", "config", "experiments", "knobs", "man", "verdicts", "workloads"];
/// Commands of other verbs that are so too.
const STEPS_AT_ONCE: &[&[&str]] = &[
    &["audit", "--config"],
    &["completions"],
    &["host", "levers"],
    &["host", "status"],
    &["runs"],
    &["server", "data", "list"],
    &["server", "list"],
];

#[test]
fn commands_of_the_documents_that_need_nothing_from_outside_run_as_they_stand() {
    let home = Home::new();
    let folder = home.path().join("work");
    fs::create_dir(&folder).unwrap();
    // What the pages name, in the folder in which the commands run.
    std::os::unix::fs::symlink(root().join("claims"), folder.join("claims")).unwrap();
    fs::write(folder.join("my.cnf"), "[mysqld]\nmax_connections = 100\n").unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for line in command_lines::of_documents(&root()).into_iter().filter(|line| line.block) {
        let words: Vec<&str> = line.words.iter().skip(1).map(String::as_str).collect();
        let at_once = words.first().is_some_and(|verb| AT_ONCE.contains(verb))
            || STEPS_AT_ONCE.iter().any(|step| words.starts_with(step))
                && !["name", "tag", "delete", "export", "import", "compare"]
                    .contains(words.get(1).unwrap_or(&""));
        let generic = words.iter().any(|word| ["DIR", "FILE", "NAME", "BUNDLE", "VERB"].contains(word));
        if !at_once || generic || line.words[0] != "mydyno" || !seen.insert(words.join(" ")) {
            continue;
        }
        let words: Vec<&str> =
            words.into_iter().map(|word| if word == "/etc/mysql/my.cnf" { "my.cnf" } else { word }).collect();
        let output = home.command(&words).current_dir(&folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // A finding at the level of --fail-on is an answer too.
        let fine = output.status.success() || output.status.code() == Some(1) && words.contains(&"--fail-on");
        assert!(fine, "{}: {}: {said}", line.place, words.join(" "));
        assert!(!output.stdout.is_empty() || !said.is_empty(), "{}: {words:?} says nothing", line.place);
    }
    assert!(seen.len() >= 14, "{seen:?}");
}

#[test]
fn every_warning_is_in_the_guide_to_a_result() {
    let guide = fs::read_to_string(root().join("docs/guides/reading-a-result.md")).unwrap();
    let mut ids = Vec::new();
    for source in ["crates/run/src/warnings.rs", "crates/run/src/course.rs"] {
        let code = fs::read_to_string(root().join(source)).unwrap();
        for rest in code.split("Warning::new(").skip(1) {
            ids.push(rest.split('"').nth(1).unwrap().to_owned());
        }
    }
    assert!(ids.len() >= 15, "{ids:?}");
    for id in ids {
        assert!(guide.contains(&format!("`{id}`")), "the guide does not explain `{id}`");
    }
}

#[test]
fn every_knob_that_somebody_wrote_about_is_in_the_reference() {
    let list: Value = serde_json::from_str(&mydyno(&["knobs", "--json"])).unwrap();
    let knobs = list["knobs"].as_array().unwrap();
    let text = |knob: &Value, key: &str| knob[key].as_str().unwrap_or_default().replace('|', "\\|");
    let price = |knob: &Value| match knob["ledger"]["note"].as_str() {
        Some(note) => format!(
            "**{}**: {}",
            knob["ledger"]["touches"].as_str().unwrap().replace('_', " "),
            note.replace('|', "\\|")
        ),
        None => String::new(),
    };
    let mut page = String::from(
        "# Knobs\n\nGenerated from the catalogue by `make docs`: settings of the host, and variables and options of servers \
         with a note or an entry in the ledger. `mydyno knobs NAME` explains these and all others with ranges by release.\n\n\
         ## The host\n\n| setting | what it does | default | what it can cost |\n|---|---|---|---|\n",
    );
    for knob in knobs.iter().filter(|knob| !knob["host"].is_null()) {
        let default = knob["host"]["default"].as_str().unwrap();
        page.push_str(&format!(
            "| `{}` | {} | {default} | {} |\n",
            text(knob, "name"),
            text(knob, "what"),
            price(knob)
        ));
    }
    page.push_str("\n## Servers\n\n| knob | what it does | on | what it can cost |\n|---|---|---|---|\n");
    for knob in
        knobs.iter().filter(|k| !(k["servers"].is_null() || k["what"].is_null() && k["ledger"].is_null()))
    {
        let on: Vec<&str> =
            knob["servers"].as_array().unwrap().iter().map(|on| on["engine"].as_str().unwrap()).collect();
        let on = on.join(" ").replace(
            "mariadb-10.1 mariadb-10.2 mariadb-10.5 mariadb-10.11 mariadb-11.4 mariadb-11.8",
            "MariaDB (all)",
        );
        let on = on.replace("mysql-5.5 mysql-5.6 mysql-5.7 mysql-8.0 mysql-9.7", "MySQL (all)");
        page.push_str(&format!(
            "| `{}` | {} | {on} | {} |\n",
            text(knob, "name"),
            text(knob, "what"),
            price(knob)
        ));
    }
    page.push_str(&format!("\nAll {} knobs, by name:\n\n", knobs.len()));
    let names: Vec<String> = knobs.iter().map(|knob| format!("`{}`", text(knob, "name"))).collect();
    page.push_str(&names.join(" · "));
    page.push('\n');
    generated("knobs.md", &page);
}
