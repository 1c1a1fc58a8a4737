//! At home in the shell: completion, manual pages, help.

use std::process::Command;

use crate::home::Home;

/// Candidates for the last of the words, by the script that bash loads.
fn completed(home: &Home, words: &[&str]) -> Vec<String> {
    let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let last = words.last().unwrap();
    let program = env!("CARGO_BIN_EXE_mydyno");
    let folder = std::path::Path::new(program).parent().unwrap().display();
    let script = format!(
        "PATH={folder}:$PATH; source <(mydyno completions bash); COMP_WORDS=({line}); COMP_CWORD={}; COMP_TYPE=9
         _clap_complete_mydyno mydyno '{last}' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.len() - 1
    );
    let output =
        Command::new("bash").arg("-c").arg(script).env("MYDYNO_STATE", home.state()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_verbs_options_and_values() {
    let home = Home::new();
    for (words, wanted) in [
        (&["mydyno", "ben"][..], "bench"),
        (&["mydyno", "bench", "oltp_read_w"], "oltp_read_write"),
        (&["mydyno", "bench", "--find-c"], "--find-capacity"),
        (&["mydyno", "bench", "tpcc", "run", "--war"], "--warehouses"),
        (&["mydyno", "claims", "swappi"], "swappiness"),
        (&["mydyno", "knobs", "sort_buffer_s"], "sort_buffer_size"),
        (&["mydyno", "prove", "sync-d"], "sync-delay"),
        (&["mydyno", "server", "up", "x", "--lever", "vm.swappi"], "vm.swappiness="),
        (&["mydyno", "completions", "zs"], "zsh"),
        (&["mydyno", "man", "server", "u"], "up"),
        (&["mydyno", "audit", "--area", "opt"], "options"),
        (&["mydyno", "knobs", "--for", "mariadb-10.1"], "mariadb-10.11"),
        (&["mydyno", "verdicts", "sync-d"], "sync-delay"),
        // The parts at which bash splits; it replaces the last one.
        (&["mydyno", "report", "--format", "=", "h"], "html"),
        (&["mydyno", "bench", "--lever", "=", "vm.swappi"], "vm.swappiness="),
        (&["mydyno", "audit", "--dsn", "mysql", ":", "//a", "@", "h/", "--fail-on", "=", "hi"], "high"),
    ] {
        let found = completed(&home, words);
        assert!(found.iter().any(|word| word.trim() == wanted), "{words:?}: {found:?}");
    }
    // A workload has its own options alone.
    let own = completed(&home, &["mydyno", "bench", "hot_row", "--"]);
    let has = |option: &str| own.iter().any(|word| word.trim() == option);
    assert!(has("--stock") && has("--rate") && !has("--warehouses"), "{own:?}");
    assert_eq!(home.lasting_traces(), [""; 0], "completing makes nothing");
}

#[test]
fn runs_are_completed_by_number_name_and_folder() {
    let home = Home::new();
    let server = home.server("s", &[]);
    home.fine(&server.bench("oltp_point_select", &["--connections", "1", "--time", "1s", "--warmup", "0s"]));
    home.fine(&["runs", "name", "1", "before"]);
    home.fine(&["runs", "tag", "1", "mine"]);
    let words = completed(&home, &["mydyno", "report", ""]);
    for word in ["1", "before"] {
        assert!(words.iter().any(|found| found == word), "{words:?}");
    }
    assert!(completed(&home, &["mydyno", "report", "20"])[0].ends_with("-oltp_point_select"));
    assert_eq!(completed(&home, &["mydyno", "runs", "--of", "o"]), ["oltp_point_select"]);
    assert_eq!(completed(&home, &["mydyno", "runs", "--tag", ""]), ["mine"]);
}

#[test]
fn a_program_that_is_not_on_the_path_is_completed_by_its_path_and_in_silence() {
    let home = Home::new();
    let (program, script) = (env!("CARGO_BIN_EXE_mydyno"), home.fine(&["completions", "bash"]));
    for (typed, found) in [(program, "bench \n"), ("mydyno", "\n"), ("/none/mydyno", "\n")] {
        let script = format!(
            "{script}\nPATH=/usr/bin:/bin; COMP_WORDS=({typed} ben); COMP_CWORD=1
             _clap_complete_mydyno {typed} ben ''; printf '%s \\n' \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash").arg("-c").arg(script).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed.trim(), found.trim(), "{typed}");
        assert!(output.stderr.is_empty(), "{typed}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn zsh_completes_at_the_first_key_from_a_file_and_from_the_running_script() {
    let home = Home::new();
    let folder = home.path().join("functions");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("_mydyno"), home.fine(&["completions", "zsh"])).unwrap();
    let program = env!("CARGO_BIN_EXE_mydyno");
    // The functions of zsh's own completion, as far as the script needs them.
    let given = format!(
        "_describe() {{ print -rl -- ${{(P)3}} }}; compdef() {{ print compdef $1 }}; words=({program} ben); CURRENT=2"
    );
    let loaded = format!("{given}; fpath=({}); autoload -Uz _mydyno; _mydyno; _mydyno", folder.display());
    let sourced = format!("{given}; source {}/_mydyno; _clap_dynamic_completer_mydyno", folder.display());
    for (script, wanted) in [(loaded, ["bench:", "bench:"]), (sourced, ["compdef _clap", "bench:"])] {
        // Not every machine has zsh.
        let Ok(output) = Command::new("zsh").args(["-f", "-c", &script]).output() else { return };
        let printed = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = printed.lines().collect();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            lines.len() == 2 && lines[0].starts_with(wanted[0]) && lines[1].starts_with(wanted[1]),
            "{printed} {errors}"
        );
    }
}

#[test]
fn scripts_load_in_the_shells_that_are_there() {
    let home = Home::new();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = home.fine(&["completions", shell]);
        let path = home.path().join(shell);
        std::fs::write(&path, script).unwrap();
        // Not every machine has all of them.
        if let Ok(output) = Command::new(shell).arg(check).arg(&path).output() {
            assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    assert!(home.fails(2, &["completions", "tcsh"]).contains("bash"));
}

#[test]
fn every_verb_has_a_manual_page_that_man_reads_without_a_warning() {
    let home = Home::new();
    let folder = home.path().join("man1");
    home.fine(&["man", "--out", folder.to_str().unwrap()]);
    let names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in ["mydyno.1", "mydyno-bench.1", "mydyno-server-up.1", "mydyno-audit.1"] {
        assert!(names.iter().any(|there| there == name), "{name}: {names:?}");
    }
    for name in &names {
        let output = Command::new("man").args(["--warnings", "-l"]).arg(folder.join(name)).output();
        let Ok(output) = output else { return };
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !reported.contains("warning"), "{name}: {reported}");
    }
    assert!(home.fine(&["man", "server", "up"]).contains("mydyno\\-server\\-up"));
    assert!(home.fails(2, &["man", "serve"]).contains("is not a command"));
}

#[test]
fn help_with_a_workload_shows_that_workloads_options_only() {
    let home = Home::new();
    let help = home.fine(&["bench", "hot_row", "--help"]);
    assert!(help.contains("--insert-order") && help.contains("--connections"), "{help}");
    assert!(!help.contains("--rand-zipfian-exp") && !help.contains("--mix-file"), "{help}");
    assert!(home.fine(&["bench", "--help"]).contains("--mix-file"));
    let help = home.fine(&["help", "compare", "oltp_point_select"]);
    assert!(help.contains("--delta") && help.contains("--tables") && !help.contains("--mix-file"), "{help}");
    assert!(home.fails(2, &["bench", "oltp_point_select", "-h"]).contains("-h is the host here"));
}
