//! `mydyno man`: manual pages, one for each verb, generated from its help.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use mydyno_run::writer::write_output;

use crate::cli::Cli;
use crate::failure::{Failure, Status};
use crate::ui::Ui;

/// Examples for the verb's help.
const EXAMPLES: &str = "\
Examples:
  mydyno man | man -l -                      the page of mydyno
  mydyno man server up | man -l -            that of a command
  mydyno man --out ~/.local/share/man/man1   all pages, for `man mydyno-bench`";

/// Options of `mydyno man`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The verb, and its subcommand; mydyno itself without one.
    #[arg(value_name = "VERB", conflicts_with = "out")]
    pub verb: Vec<String>,
    /// Write the pages of all verbs into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Prints a page, or writes all.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let mut command = Cli::command();
    command.build();
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::environment(format!("{}: {e}", folder.display())))?;
        let mut pages = Vec::new();
        all(&command, "mydyno", &mut pages);
        for (name, page) in &pages {
            write_output(&folder.join(format!("{name}.1")), page)
                .map_err(|e| Failure::environment(e.to_string()))?;
        }
        ui.note(&format!("{} pages are in {}", pages.len(), folder.display()));
        return Ok(Status::Fine);
    }
    let (mut name, mut found) = ("mydyno".to_owned(), &command);
    for word in &args.verb {
        found = found.find_subcommand(word).ok_or_else(|| {
            Failure::usage(format!("`{name} {word}` is not a command; see `{name} --help`"))
        })?;
        name = format!("{name} {word}");
    }
    ui.out(page(found, &name.replace(' ', "-")).trim_end());
    Ok(Status::Fine)
}

/// The pages of a command and of all its subcommands, with their names.
fn all(command: &Command, name: &str, pages: &mut Vec<(String, String)>) {
    pages.push((name.to_owned(), page(command, name)));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        all(below, &format!("{name}-{}", below.get_name()), pages);
    }
}

/// Verbs that read the command line of another program: options of mydyno have no place there.
const OTHER_PROGRAMS: [(&str, &str); 2] = [("mydyno-sysbench", "sysbench"), ("mydyno-slap", "slap")];

/// Environment variables that a user sets for mydyno.
const ENVIRONMENT: [(&str, &str); 5] = [
    (
        "MYDYNO_STATE",
        "The state folder: runs, private servers and the journal of changes. It goes before `state` in the file of defaults. Default: /var/lib/mydyno for root, else $XDG_STATE_HOME/mydyno or ~/.local/state/mydyno.",
    ),
    (
        "MYDYNO_CONFIG",
        "The file of defaults, as --config. Default: $XDG_CONFIG_HOME/mydyno.toml or ~/.config/mydyno.toml.",
    ),
    ("MYDYNO_LOG", "Diagnostics on standard error, as --log."),
    (
        "MYSQL_PWD",
        "The password of the account. Other users of the host cannot see it on a command line; a file (--password-file) is safer.",
    ),
    ("MYSQL_HOST, MYSQL_TCP_PORT, MYSQL_UNIX_PORT, MYSQL_HOME", "As for the clients of MySQL and MariaDB."),
];

/// A page in the format of man(7). Writing to memory does not fail, so errors are ignored.
fn page(command: &Command, name: &str) -> String {
    let mut text = Vec::new();
    let mut command = command.clone().display_name(name.to_owned());
    let other = OTHER_PROGRAMS.iter().find(|(page, _)| *page == name);
    let hidden = |arg: Arg| if arg.is_positional() { arg } else { arg.hide(true) };
    if other.is_some() {
        command = command.mut_args(hidden);
    }
    // One line instead of every option: some verbs have a hundred.
    let usage = command.render_usage().to_string();
    let after = command.get_after_help().map(ToString::to_string);
    let has_options = other.is_none() && command.get_arguments().any(|arg| !arg.is_hide_set());
    let has_commands = command.get_subcommands().any(|below| !below.is_hide_set());
    let version = mydyno_model::Writer::current().version;
    let man = Man::new(command).date("").source(format!("mydyno {version}")).manual("mydyno");
    let _ = man.render_title(&mut text);
    let _ = man.render_name_section(&mut text);
    let _ = writeln!(text, ".SH SYNOPSIS\n{}", literal(usage.trim_start_matches("Usage: ").trim()));
    let _ = man.render_description_section(&mut text);
    if has_options {
        let _ = man.render_options_section(&mut text);
    }
    if let Some((_, verb)) = other {
        let words = format!(
            "Options, commands and reports are those of the other program; `mydyno {verb} --help` lists them."
        );
        let _ = writeln!(text, ".SH OPTIONS\n{}", literal(&words));
    }
    if has_commands {
        let _ = man.render_subcommands_section(&mut text);
    }
    if name == "mydyno" {
        let _ = writeln!(text, ".SH ENVIRONMENT");
        for (variable, meaning) in ENVIRONMENT {
            let _ = writeln!(text, ".TP\n\\fB{}\\fR\n{}", literal(variable), literal(meaning));
        }
    }
    if let Some(after) = after {
        // Examples are formatted by hand.
        let _ = writeln!(text, ".SH NOTES\n.nf\n{}\n.fi", literal(&after));
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Text in which man(7) sees no request, no escape and no hyphen that it may change.
fn literal(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped.lines().map(|line| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(name: &str) -> String {
        let mut command = Cli::command();
        command.build();
        let mut pages = Vec::new();
        all(&command, "mydyno", &mut pages);
        pages.into_iter().find(|(page, _)| page == name).unwrap().1
    }

    #[test]
    fn pages_of_other_programs_list_no_options_of_this_one() {
        for (name, verb) in OTHER_PROGRAMS {
            let page = page_of(name);
            assert!(page.contains(&format!("`mydyno {verb} \\-\\-help`")), "{page}");
            assert!(page.contains(&format!("SYNOPSIS\nmydyno {verb} [WORD]...")), "{page}");
            for option in ["json", "quiet", "log"] {
                assert!(!page.contains(&format!("\\-\\-{option}")), "{option}: {page}");
            }
        }
        assert!(page_of("mydyno-bench").contains("\\-\\-json"));
    }

    #[test]
    fn the_page_of_mydyno_names_its_environment_and_every_page_its_program() {
        let page = page_of("mydyno");
        let environment = page.split_once(".SH ENVIRONMENT").unwrap().1;
        for variable in ["MYDYNO_STATE", "MYDYNO_CONFIG", "MYDYNO_LOG", "MYSQL_PWD"] {
            assert!(environment.contains(&format!("\\fB{variable}\\fR")), "{variable}: {page}");
        }
        let version = mydyno_model::Writer::current().version;
        for name in ["mydyno", "mydyno-bench", "mydyno-runs-name"] {
            let title = page_of(name).lines().find(|line| line.starts_with(".TH")).unwrap().to_owned();
            assert!(title.contains(&format!("mydyno {version}")), "{title}");
        }
    }
}
