//! Tests: the command line takes each command that README, the documentation and the help texts show.

use std::path::Path;

use clap::CommandFactory;
use clap::error::ErrorKind;

use crate::cli::Cli;

#[path = "../../../tests/command_lines.rs"]
mod command_lines;

/// Ends a command inside a sentence; readers complete the rest.
const REST: char = '…';

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The mistake of a command line, if it has one.
fn mistake(words: &[String]) -> Option<clap::Error> {
    let args = crate::cli::with_help(words.iter().map(Into::into).collect());
    let (mut args, command) = (args, Cli::command());
    if crate::verbs::compat::program_of(&args).is_some() {
        return None;
    }
    crate::config::take_file(&mut args);
    let line = crate::secrets::take_password(args, &command);
    let command = crate::workload_args::for_one_workload(command, &line.args);
    command.try_get_matches_from(line.args).err()
}

/// The examples below the help of a command and of those below it.
fn examples(command: &clap::Command, lines: &mut Vec<command_lines::CommandLine>) {
    if let Some(text) = command.get_after_help() {
        // As a block of a page, which is indented by four.
        let block: String = text.to_string().lines().map(|line| format!("    {line}\n")).collect();
        command_lines::of_page(&format!("help of {}", command.get_name()), &block, lines);
    }
    command.get_subcommands().for_each(|below| examples(below, lines));
}

#[test]
fn every_command_line_of_the_documents_is_one() {
    let mut wrong = Vec::new();
    let mut blocks = 0;
    let mut lines = command_lines::of_documents(root());
    examples(&Cli::command(), &mut lines);
    for mut line in lines {
        if line.words.first().is_none_or(|word| word != "mydyno") {
            continue;
        }
        let open = line.words.iter().position(|word| word.contains(REST));
        match (line.block, open) {
            // A line to be copied says with it where the server's options stand.
            (true, Some(at)) if line.words.get(at).is_some_and(|word| word.len() == REST.len_utf8()) => {
                line.words.splice(at..=at, ["--sandbox".to_owned()]);
            }
            (_, Some(at)) => line.words.truncate(at),
            _ => {}
        }
        blocks += usize::from(line.block);
        let Some(error) = mistake(&line.words) else { continue };
        let incomplete = matches!(
            error.kind(),
            ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                | ErrorKind::InvalidValue
                | ErrorKind::ValueValidation
        );
        // A word in capitals stands for one of the reader's.
        let generic = error.kind() == ErrorKind::InvalidSubcommand
            && line.words.iter().skip(1).any(|word| word.chars().all(|c| c.is_ascii_uppercase()));
        let shows = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if !shows && (line.block || !incomplete && !generic) {
            let said = error.to_string();
            let first = said.lines().next().unwrap_or_default().to_owned();
            wrong.push(format!("{}: {}\n  {first}", line.place, line.words.join(" ")));
        }
    }
    assert!(blocks > 100, "{blocks}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_target_of_make_in_the_documents_is_one() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    for line in command_lines::of_documents(root()) {
        let [make, target, ..] = line.words.as_slice() else { continue };
        if make == "make" && !target.contains('=') {
            let there = makefile.lines().any(|rule| rule.starts_with(&format!("{target}:")));
            assert!(there, "{}: there is no target {target}", line.place);
        }
    }
}
