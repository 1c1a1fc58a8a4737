//! Completion in the shell: the command line with the known values, and the scripts that request them.

use clap::{Arg, Command, CommandFactory};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use mydyno_host::{Machine, StateDir};
use mydyno_sandbox::Site;

use crate::cli::Cli;
use crate::private::find_host;

/// The variable with which a shell's script requests candidates; its value is the shell's name.
const VARIABLE: &str = "MYDYNO_COMPLETE";
/// Shells with a script.
pub const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// A list of an argument's values, made when the user presses the key.
type Values = fn() -> Vec<CompletionCandidate>;

/// Arguments with known values: the subcommands that lead to them, an identifier, and the values.
const VALUES: &[(&[&str], &str, Values)] = &[
    (&["bench"], "workload", workloads),
    (&["compare"], "workload", workloads),
    (&["workloads"], "name", workloads),
    (&["claims"], "id", claims),
    (&["audit"], "explain", claims),
    (&["audit"], "only", claims),
    (&["audit"], "skip", claims),
    (&["knobs"], "name", knobs),
    (&["experiments"], "name", experiments),
    (&["prove"], "what", experiments),
    (&["checkup"], "workload", workloads),
    (&["checkup"], "only", claims),
    (&["checkup"], "skip", claims),
    (&["config"], "verb", verbs),
    (&["prove"], "resume", runs),
    (&["prove"], "extend", runs),
    (&["prove"], "again", runs),
    (&["watch"], "replay", runs),
    (&["report"], "runs", runs),
    (&["runs", "name"], "run", runs),
    (&["runs", "tag"], "run", runs),
    (&["runs", "compare"], "runs", runs),
    (&["runs", "export"], "run", runs),
    (&["runs", "delete"], "runs", runs),
    (&["compare"], "baseline", levers),
    (&["compare"], "treatment", levers),
    (&["compare"], "both", levers),
    (&["compare"], "factor", levers),
    (&["bench"], "levers", levers),
    (&["server", "up"], "levers", levers),
    (&["server", "up"], "data", data),
    (&["bench"], "data", data),
    (&["server", "data", "check"], "name", data),
    (&["server", "data", "remove"], "name", data),
    (&["server", "down"], "names", servers),
    (&["server", "log"], "name", servers),
    (&["server", "cli"], "name", servers),
];

/// Answers a shell's script, if it requests candidates. Returns whether it did; the program then ends.
pub fn answer() -> bool {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(command).var(VARIABLE).bin("mydyno");
    // An error message would disturb the prompt, so completions that fail are empty.
    std::env::var_os(VARIABLE).is_some()
        && asked.try_complete(std::env::args_os(), here.as_deref()).unwrap_or(true)
}

/// The script of a shell of [`SHELLS`].
pub fn script(shell: &str) -> Option<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    shells.completer(shell)?.write_registration(VARIABLE, "mydyno", "mydyno", "mydyno", &mut script).ok()?;
    String::from_utf8(script).ok()
}

/// The command line with the values of its arguments.
fn command() -> Command {
    VALUES.iter().fold(Cli::command(), |command, (path, id, values)| with_values(command, path, id, *values))
}

fn with_values(command: Command, path: &[&str], id: &'static str, values: Values) -> Command {
    if let [first, rest @ ..] = path {
        return command.mut_subcommand(*first, |below| with_values(below, rest, id, values));
    }
    let reported = |arg: Arg| arg.add(ArgValueCandidates::new(values));
    let positionals: Vec<String> = command.get_positionals().map(|arg| arg.get_id().to_string()).collect();
    if !positionals.iter().any(|name| name == id) {
        return command.mut_arg(id, reported);
    }
    // A changed argument moves to the end: all of them are changed in turn to stay in order.
    positionals.into_iter().fold(command, |command, name| {
        let wanted = name == id;
        command.mut_arg(name, |arg| if wanted { reported(arg) } else { arg })
    })
}

fn candidate(name: impl Into<String>, help: impl Into<String>) -> CompletionCandidate {
    CompletionCandidate::new(name.into()).help(Some(help.into().into()))
}

fn workloads() -> Vec<CompletionCandidate> {
    mydyno_workload::catalogue::all().map(|spec| candidate(spec.name, spec.summary)).collect()
}

fn verbs() -> Vec<CompletionCandidate> {
    Cli::command().get_subcommands().map(|verb| CompletionCandidate::new(verb.get_name())).collect()
}

fn claims() -> Vec<CompletionCandidate> {
    let claims = mydyno_judge::Claims::embedded();
    claims
        .iter()
        .flat_map(|all| all.iter())
        .map(|claim| candidate(&claim.document.id, &claim.document.title))
        .collect()
}

fn knobs() -> Vec<CompletionCandidate> {
    let knobs = mydyno_settings::knobs::Knobs::embedded();
    knobs.iter().flat_map(|all| all.iter()).map(|knob| CompletionCandidate::new(&knob.name)).collect()
}

fn experiments() -> Vec<CompletionCandidate> {
    let experiments = mydyno_prove::experiment::Experiments::embedded();
    let all = experiments.iter().flat_map(|all| all.iter());
    all.map(|one| candidate(&*one.definition.name, &*one.definition.question)).collect()
}

/// Levers, each followed by `=`; those of this host with its devices.
fn levers() -> Vec<CompletionCandidate> {
    let levers = Machine::real().map(|machine| mydyno_levers::list(&machine)).unwrap_or_default();
    levers.into_iter().map(|lever| candidate(format!("{}=", lever.id), lever.takes)).collect()
}

fn servers() -> Vec<CompletionCandidate> {
    let Some(state) = state() else { return vec![] };
    let servers = Machine::real().ok().and_then(|machine| mydyno_sandbox::list(&state, &machine).ok());
    servers.into_iter().flatten().map(|server| CompletionCandidate::new(server.name)).collect()
}

fn data() -> Vec<CompletionCandidate> {
    let Ok(Some(host)) = find_host("completion") else { return vec![] };
    let names = mydyno_sandbox::data::names(&Site::new(&host)).unwrap_or_default();
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn runs() -> Vec<CompletionCandidate> {
    let Some(state) = state() else { return vec![] };
    let entries = std::fs::read_dir(state.path().join("runs")).into_iter().flatten().flatten();
    entries.map(|entry| CompletionCandidate::new(entry.path())).collect()
}

/// The state folder, if there is one: completing does not make it.
fn state() -> Option<StateDir> {
    StateDir::find(&StateDir::default_path().ok()?).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_with_values_exists() {
        // An unknown command or argument panics in clap.
        command().debug_assert();
    }

    #[test]
    fn every_shell_has_a_script_and_the_catalogues_have_values() {
        for shell in SHELLS {
            assert!(script(shell).unwrap().contains(VARIABLE), "{shell}");
        }
        assert!(script("tcsh").is_none());
        for values in [workloads(), claims(), knobs(), experiments(), levers()] {
            assert!(values.len() > 5, "{values:?}");
        }
    }
}
