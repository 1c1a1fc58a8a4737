//! Completion in the shell: the command line with the known values, and the scripts that request them.

mod kept;

use clap::{Arg, Command, CommandFactory};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use mydyno_host::{Machine, StateDir};
use mydyno_sandbox::Site;

use crate::cli::Cli;
use crate::private::find_host;
use crate::workload_args;

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
    (&["audit"], "area", areas),
    (&["audit"], "release", releases),
    (&["knobs"], "release", releases),
    (&["verdicts"], "name", proved),
    (&["config"], "verb", commands),
    (&["man"], "verb", commands),
    (&["runs"], "of", kept::subjects),
    (&["runs"], "tag", kept::tags),
    (&["runs", "tag"], "tags", kept::tags),
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

/// Arguments that name kept runs: the subcommands that lead to them, and an identifier.
const RUNS: &[(&[&str], &str)] = &[
    (&["prove"], "resume"),
    (&["prove"], "extend"),
    (&["prove"], "again"),
    (&["watch"], "replay"),
    (&["report"], "runs"),
    (&["runs", "name"], "run"),
    (&["runs", "tag"], "run"),
    (&["runs", "compare"], "runs"),
    (&["runs", "export"], "run"),
    (&["runs", "delete"], "runs"),
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
pub fn script(shell: &str) -> Option<&'static str> {
    match shell {
        "bash" => Some(include_str!("mydyno.bash")),
        "zsh" => Some(include_str!("_mydyno")),
        "fish" => Some(include_str!("mydyno.fish")),
        _ => None,
    }
}

/// The words of the command line that is being typed: the program, then the verb. The last one is incomplete.
fn typed() -> Vec<String> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The command line with the values of its arguments, and of the workloads' options those of a workload that was typed.
fn command() -> Command {
    let words = typed();
    let before = words.split_last().map_or(&[][..], |(_, before)| before);
    let verb = before.get(1).filter(|verb| workload_args::VERBS.contains(&verb.as_str()));
    let workload = before.iter().skip(2).find_map(|word| mydyno_workload::find(word).ok());
    let command = match (verb, workload) {
        (Some(verb), Some(workload)) => workload_args::of_workload(Cli::command(), verb, workload),
        _ => Cli::command(),
    };
    let command = VALUES.iter().fold(command, |command, (path, id, values)| {
        with(command, path, id, &|arg: Arg| arg.add(ArgValueCandidates::new(*values)))
    });
    RUNS.iter().fold(command, |command, (path, id)| {
        with(command, path, id, &|arg: Arg| arg.add(ArgValueCompleter::new(kept::runs)))
    })
}

/// The command line with a changed argument.
fn with(command: Command, path: &[&str], id: &'static str, change: &dyn Fn(Arg) -> Arg) -> Command {
    if let [first, rest @ ..] = path {
        return command.mut_subcommand(*first, |below| with(below, rest, id, change));
    }
    let positionals: Vec<String> = command.get_positionals().map(|arg| arg.get_id().to_string()).collect();
    if !positionals.iter().any(|name| name == id) {
        return command.mut_arg(id, change);
    }
    // A changed argument moves to the end: all of them are changed in turn to stay in order.
    positionals.into_iter().fold(command, |command, name| {
        let wanted = name == id;
        command.mut_arg(name, |arg| if wanted { change(arg) } else { arg })
    })
}

fn candidate(name: impl Into<String>, help: impl Into<String>) -> CompletionCandidate {
    CompletionCandidate::new(name.into()).help(Some(help.into().into()))
}

fn workloads() -> Vec<CompletionCandidate> {
    mydyno_workload::catalogue::all().map(|spec| candidate(spec.name, spec.summary)).collect()
}

/// The verbs, or the commands below those that are typed.
fn commands() -> Vec<CompletionCandidate> {
    below(&Cli::command(), &typed())
}

/// The commands below those that the words name, of which the first two are the program and the verb, and the last is being typed.
fn below(all: &Command, words: &[String]) -> Vec<CompletionCandidate> {
    let typed = words.split_last().map_or(&[][..], |(_, before)| before);
    let named = typed.iter().skip(2).filter(|word| !word.starts_with('-'));
    let found = named.fold(all, |command, word| command.find_subcommand(word).unwrap_or(command));
    let shown = found.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown
        .map(|verb| candidate(verb.get_name(), verb.get_about().map(ToString::to_string).unwrap_or_default()))
        .collect()
}

fn areas() -> Vec<CompletionCandidate> {
    let claims = mydyno_judge::Claims::embedded();
    let areas = claims.iter().flat_map(mydyno_judge::Claims::areas).chain([mydyno_judge::lint::AREA]);
    areas.map(CompletionCandidate::new).collect()
}

fn releases() -> Vec<CompletionCandidate> {
    let knobs = mydyno_settings::knobs::Knobs::embedded();
    knobs
        .iter()
        .flat_map(|knobs| knobs.servers())
        .map(|server| CompletionCandidate::new(&server.engine))
        .collect()
}

/// Names that verdicts have: experiments and claims.
fn proved() -> Vec<CompletionCandidate> {
    experiments().into_iter().chain(claims()).collect()
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
    fn commands_are_those_below_the_typed_ones() {
        let names = |line: &str| -> Vec<String> {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let found = below(&Cli::command(), &words);
            found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert!(names("mydyno man ").contains(&"bench".to_owned()));
        assert!(names("mydyno man serv").contains(&"server".to_owned()));
        let below_server = names("mydyno config server u");
        assert!(below_server.contains(&"up".to_owned()) && !below_server.contains(&"bench".to_owned()));
        assert!(!names("mydyno man probe ").contains(&"malloc-child".to_owned()));
    }

    #[test]
    fn every_shell_has_a_script_and_the_catalogues_have_values() {
        for shell in SHELLS {
            assert!(script(shell).unwrap().contains(VARIABLE), "{shell}");
        }
        assert!(script("tcsh").is_none());
        for values in [
            workloads(),
            claims(),
            knobs(),
            experiments(),
            levers(),
            areas(),
            releases(),
            proved(),
            commands(),
        ] {
            assert!(values.len() > 5, "{values:?}");
        }
    }
}
