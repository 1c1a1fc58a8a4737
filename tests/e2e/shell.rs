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
        (&["mydyno", "claims", "swappi"], "swappiness"),
        (&["mydyno", "knobs", "sort_buffer_s"], "sort_buffer_size"),
        (&["mydyno", "prove", "sync-d"], "sync-delay"),
        (&["mydyno", "server", "up", "x", "--lever", "vm.swappi"], "vm.swappiness="),
        (&["mydyno", "completions", "zs"], "zsh"),
    ] {
        let found = completed(&home, words);
        assert!(found.iter().any(|word| word.trim() == wanted), "{words:?}: {found:?}");
    }
    assert_eq!(home.lasting_traces(), [""; 0], "completing makes nothing");
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
