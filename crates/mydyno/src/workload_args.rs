//! Options of the workloads, generated from their descriptions.

use std::ffi::OsString;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use mydyno_workload::catalogue::{self, Spec};
use mydyno_workload::options::{ALIASES, Default, Form, OptionSpec};

use crate::config::{typed_matches, verb_of};

/// The given options, by name, as typed.
#[derive(Debug, Clone, std::default::Default)]
pub struct WorkloadArgs(pub Vec<(String, String)>);

/// Verbs that take a workload and its options.
pub const VERBS: [&str; 2] = ["bench", "compare"];

/// Every option of every workload, once.
fn all() -> Vec<&'static OptionSpec> {
    let mut all: Vec<&OptionSpec> = Vec::new();
    for spec in catalogue::all().flat_map(|w| w.options) {
        if !all.iter().any(|known| known.name == spec.name) {
            all.push(spec);
        }
    }
    all
}

/// The different meanings of an option's name, each with a workload that has it so.
fn meanings(name: &str) -> Vec<(&'static str, &'static OptionSpec)> {
    let mut found: Vec<(&str, &OptionSpec)> = Vec::new();
    for workload in catalogue::all() {
        let Some(spec) = workload.options.iter().find(|spec| spec.name == name) else { continue };
        if !found.iter().any(|(_, known)| *known == spec) {
            found.push((workload.name, spec));
        }
    }
    found
}

/// Whether a word names a workload, or the file of a mix.
pub fn is_workload(word: &str) -> bool {
    mydyno_workload::find(word).is_ok() || std::path::Path::new(word).is_file()
}

/// The workload that a command line of [`VERBS`] names.
pub fn workload_of(verb: &str, found: &ArgMatches) -> Option<&'static Spec> {
    let named = VERBS.contains(&verb).then(|| found.try_get_one::<String>("workload").ok().flatten())??;
    mydyno_workload::find(named).ok()
}

/// Whether an option is one of other workloads only.
pub fn lacks(verb: &str, workload: &Spec, option: &str) -> bool {
    // `compare` has its own option with the name of one.
    let taken = verb == "compare" && TAKEN_BY_COMPARE.contains(&option);
    !taken
        && all().iter().any(|spec| spec.name == option)
        && !workload.options.iter().any(|own| own.name == option)
}

/// The command line, with the options of other workloads hidden and its own in its own words when the arguments request help for
/// a workload.
pub fn for_one_workload(command: Command, args: &[OsString]) -> Command {
    let is_question = |word: &OsString| word == "--help" || word == "-?";
    if !args.iter().any(is_question) {
        return command;
    }
    let Some((_, path)) = verb_of(args, &command) else { return command };
    let [verb] = path.as_slice() else { return command };
    let verb = &verb.get_name().to_owned();
    // Help ends the parsing, so the workload is looked up without it.
    let rest: Vec<OsString> = args.iter().filter(|word| !is_question(word)).cloned().collect();
    let Some(workload) = typed_matches(&rest, &command, 1).and_then(|found| workload_of(verb, &found)) else {
        return command;
    };
    of_workload(command, verb, workload)
}

/// The command line, with the options of other workloads than this one hidden from a verb's help and completions, and its own
/// in its own words.
pub fn of_workload(command: Command, verb: &str, workload: &Spec) -> Command {
    let others = all().into_iter();
    command.mut_subcommand(verb, |below| {
        let known: Vec<String> = below.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        let others = others.filter(|spec| known.iter().any(|name| name == spec.name));
        let others = others.filter(|spec| lacks(verb, workload, spec.name));
        let below = others.fold(below, |below, spec| below.mut_arg(spec.name, |arg| arg.hide(true)));
        let own = workload.options.iter().filter(|spec| known.iter().any(|name| name == spec.name));
        let own = own.filter(|spec| meanings(spec.name).len() > 1);
        own.fold(below, |below, spec| {
            below.mut_arg(spec.name, |arg| arg.value_name(form_text(&spec.form)).help(help_text(spec)))
        })
    })
}

/// The help of an option: its text and its default.
fn help_text(spec: &OptionSpec) -> String {
    format!("{} [default: {}]", spec.help, default_text(spec))
}

/// A default as it would be typed.
pub fn default_text(spec: &OptionSpec) -> String {
    match spec.default {
        Default::Count(n) => n.to_string(),
        Default::Switch(on) => if on { "on" } else { "off" }.to_owned(),
        Default::Word(word) => word.to_owned(),
        Default::Real(x) => x.to_string(),
        Default::Nothing => "none".to_owned(),
    }
}

/// The accepted form of a value, for help and messages.
pub fn form_text(form: &Form) -> String {
    match form {
        Form::Count { .. } => "N".to_owned(),
        Form::CountWith { .. } => "N[:1]".to_owned(),
        Form::Real { .. } => "X".to_owned(),
        Form::Switch => "on|off".to_owned(),
        Form::Choice(words) => words.join("|"),
        Form::Texts => "TEXT".to_owned(),
        Form::File => "FILE".to_owned(),
    }
}

/// As [`WorkloadArgs`] for `compare`, some of whose own options have the same names: `--both workload.NAME=VALUE` sets
/// those.
#[derive(Debug, Clone, std::default::Default)]
pub struct ComparedWorkloadArgs(pub Vec<(String, String)>);

/// Options of workloads whose names have another meaning in `compare`.
const TAKEN_BY_COMPARE: &[&str] = &["delta"];

fn compared() -> Vec<&'static OptionSpec> {
    all().into_iter().filter(|spec| !TAKEN_BY_COMPARE.contains(&spec.name)).collect()
}

impl Args for ComparedWorkloadArgs {
    fn augment_args(command: Command) -> Command {
        augment(command, compared())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ComparedWorkloadArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(given(matches, compared())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Options with the values that were given, in the order of the specifications.
fn given(matches: &ArgMatches, specs: Vec<&'static OptionSpec>) -> Vec<(String, String)> {
    let given = specs.into_iter().flat_map(|spec| {
        let values = matches.get_many::<String>(spec.name).unwrap_or_default();
        values.map(|value| (spec.name.to_owned(), value.clone()))
    });
    given.collect()
}

fn augment(command: Command, specs: Vec<&'static OptionSpec>) -> Command {
    specs.into_iter().fold(command, |command, spec| {
        let (mut forms, mut helps) = (form_text(&spec.form), help_text(spec));
        let meanings = meanings(spec.name);
        if meanings.len() > 1 {
            let texts = |text: &dyn Fn(&str, &OptionSpec) -> String| -> Vec<String> {
                meanings.iter().map(|(workload, spec)| text(workload, spec)).collect()
            };
            forms = texts(&|_, spec| form_text(&spec.form)).join("|");
            helps = texts(&|workload, spec| format!("{workload}: {}", help_text(spec))).join("; ");
        }
        let mut arg = clap::Arg::new(spec.name)
            .long(spec.name)
            .value_name(forms)
            .help(helps)
            .help_heading("Workload (see `mydyno workloads NAME`)");
        let aliases = ALIASES.iter().filter(|(_, name)| *name == spec.name).map(|(alias, _)| *alias);
        arg = arg.visible_aliases(aliases.collect::<Vec<_>>());
        if spec.form == Form::Switch {
            arg = arg.num_args(0..=1).default_missing_value("on").require_equals(true);
        }
        if spec.form == Form::Texts {
            arg = arg.action(clap::ArgAction::Append);
        }
        command.arg(arg)
    })
}

impl Args for WorkloadArgs {
    fn augment_args(command: Command) -> Command {
        augment(command, all())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WorkloadArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(given(matches, all())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// Whether the help of a command line shows an option.
    fn shows(line: &str, option: &str) -> bool {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let help =
            for_one_workload(Cli::command(), &args).try_get_matches_from(&args).unwrap_err().to_string();
        help.contains(&format!("--{option}"))
    }

    #[test]
    fn help_is_that_of_the_workload_and_not_of_a_value_with_its_name() {
        for (line, warehouses, tables) in [
            ("mydyno bench oltp_point_select --help", false, true),
            ("mydyno bench tpcc --help", true, false),
            ("mydyno bench tpcc -?", true, false),
            ("mydyno bench --schema tpcc oltp_point_select --help", false, true),
            ("mydyno bench --schema=tpcc --help", true, true),
            ("mydyno compare tpcc --help", true, false),
            ("mydyno bench --help", true, true),
        ] {
            assert_eq!(
                (shows(line, "warehouses"), shows(line, "table-size")),
                (warehouses, tables),
                "{line}"
            );
        }
        assert!(shows("mydyno compare oltp_point_select --help", "delta"));
    }
}
