//! Passwords on the command line: removed before any other code sees them, and overwritten where other users of the
//! host can read the arguments of this process.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;

use clap::{Arg, Command};
use mydyno_linux::process::argument_area;
use mydyno_wire::Secret;

/// The password option of the command line.
#[derive(Debug, Default)]
pub enum Password {
    /// Nothing.
    #[default]
    NotGiven,
    /// `-p` or `--password`: ask for it.
    Ask,
    /// `-pWORD` or `--password=WORD`.
    Given(Secret),
}

/// The command line without its passwords.
#[derive(Debug, Default)]
pub struct CommandLine {
    /// The arguments that are left; they may be recorded and shown.
    pub args: Vec<OsString>,
    /// The last password option.
    pub password: Password,
    /// The separate word after `-p` or `--password`. It may be a password that should have been attached, so no message
    /// repeats it.
    pub word_after: Option<String>,
}

/// The message for a separate word after `-p`; it does not repeat the word.
pub const WORD_AFTER: &str = "-p and --password are followed by a separate word, which is not repeated here because it may be a \
    password: join a password as in -pWORD, use --password-file or MYSQL_PWD, or put -p last to be asked for it";

/// Removes the password from the arguments when their verb has a password option in `cli`, wherever it occurs before
/// `--`.
pub fn take_password(args: Vec<OsString>, cli: &Command) -> CommandLine {
    let Some(verb) = verb_of(&args, cli).filter(|verb| verb.get_arguments().any(is_password)) else {
        return CommandLine { args, ..CommandLine::default() };
    };
    let mut line = CommandLine::default();
    let mut args = args.into_iter();
    line.args.extend(args.next());
    let mut after_bare = false;
    for arg in args.by_ref() {
        let found = password_in(&arg, verb);
        if std::mem::take(&mut after_bare) && found.is_none() && !arg.as_bytes().starts_with(b"-") {
            line.word_after = Some(arg.to_string_lossy().into_owned()).filter(|word| !word.is_empty());
        }
        match found {
            Some(found) => {
                let (before, word) =
                    (arg.as_bytes().get(..found.option_at), arg.as_bytes().get(found.word_at..));
                // Flags that precede `-p` in the same argument, as in `-Cp`.
                line.args.extend(before.filter(|b| b.len() > 1).map(|b| OsStr::from_bytes(b).to_owned()));
                match word.filter(|word| !word.is_empty()) {
                    Some(word) => {
                        line.password =
                            Password::Given(Secret::from(String::from_utf8_lossy(word).into_owned()))
                    }
                    None => {
                        line.password = Password::Ask;
                        after_bare = true;
                    }
                }
            }
            None if arg == "--" => {
                line.args.push(arg);
                break;
            }
            None => line.args.push(arg),
        }
    }
    line.args.extend(args);
    if matches!(line.password, Password::Given(_)) {
        hide_passwords(|arg| password_in(arg, verb).map(|place| place.word_at));
    }
    line
}

/// Overwrites passwords in the command line as other users see it, and excludes them from core dumps. `word_at` gives
/// the offset of a password within an argument.
pub fn hide_passwords(word_at: impl Fn(&OsStr) -> Option<usize>) {
    overwrite_passwords(word_at);
    forbid_core_dumps();
}

/// The verb, or the nested verb, in the arguments. A word before it is skipped: it may be a password.
fn verb_of<'a>(args: &[OsString], cli: &'a Command) -> Option<&'a Command> {
    let mut words = args.iter().skip(1).filter(|arg| !arg.as_bytes().starts_with(b"-"));
    let mut verb = words.find_map(|word| cli.find_subcommand(word))?;
    while let Some(below) = words.next().and_then(|word| verb.find_subcommand(word)) {
        verb = below;
    }
    Some(verb)
}

fn is_password(arg: &Arg) -> bool {
    arg.get_id() == "password"
}

/// The position of a password option in an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Offset of the option; flags of one letter may precede a short one.
    option_at: usize,
    /// Offset of the word; the argument's length when there is none.
    word_at: usize,
}

/// The password option in an argument; `None` when the argument is something else.
fn password_in(arg: &OsStr, verb: &Command) -> Option<Place> {
    let bytes = arg.as_bytes();
    if let Some(long) = bytes.strip_prefix(b"--") {
        let rest = long.strip_prefix(b"password")?;
        let word_at =
            if rest.is_empty() { bytes.len() } else { bytes.len() - rest.strip_prefix(b"=")?.len() };
        return Some(Place { option_at: 0, word_at });
    }
    for (at, letter) in bytes.strip_prefix(b"-")?.iter().enumerate() {
        let option = verb.get_arguments().find(|a| a.get_short() == Some(char::from(*letter)))?;
        if is_password(option) {
            let option_at = if at == 0 { 0 } else { at + 1 };
            return Some(Place { option_at, word_at: at + 2 });
        }
        if option.get_action().takes_values() {
            return None;
        }
    }
    None
}

/// The replacement of a password in a message.
const NOT_SHOWN: &str = "***";

/// A text without the passwords of the URLs in it, as in `mysql://user:WORD@host/?password=WORD`. A URL ends at white space.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let shown = |word: &str| match word.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", without_password_of_url(rest)),
        None => word.to_owned(),
    };
    Cow::Owned(text.split_inclusive(char::is_whitespace).map(shown).collect())
}

/// The part of a URL after its scheme, without its passwords.
fn without_password_of_url(rest: &str) -> String {
    // A password may hold the characters that end an account or a host.
    let account = rest.rfind('@').unwrap_or(0);
    let (before, after) = rest.split_at(account);
    let before = match before.split_once(':') {
        Some((user, _)) => format!("{user}:{NOT_SHOWN}"),
        None => before.to_owned(),
    };
    let after = match after.split_once("password=") {
        Some((options, value)) => {
            let ends = |c: char| c.is_whitespace() || matches!(c, '&' | '\'' | '"' | '`');
            let end = value.find(ends).unwrap_or(value.len());
            format!("{options}password={NOT_SHOWN}{}", &value[end..])
        }
        None => after.to_owned(),
    };
    before + &after
}

/// Excludes this process from core dumps. A size limit (`RLIMIT_CORE`) would not do: the kernel ignores it where `core_pattern`
/// pipes dumps to a program (core(5)), and children inherit it, while a child that executes a program is dumpable again.
pub use mydyno_linux::calls::this_process::forbid_core_dumps;

/// Overwrites passwords in this process's command line as /proc shows it. Best effort, as in other clients: between the
/// start of the process and this call they are visible, so a file or `-p` without a password is safer.
fn overwrite_passwords(word_at: impl Fn(&OsStr) -> Option<usize>) {
    let stat = std::fs::read("/proc/self/stat").unwrap_or_default();
    let Some((start, end)) = argument_area(&String::from_utf8_lossy(&stat)) else { return };
    let Ok(memory) = std::fs::OpenOptions::new().read(true).write(true).open("/proc/self/mem") else {
        return;
    };
    let mut area = vec![0; end - start];
    if memory.read_exact_at(&mut area, start as u64).is_err() {
        return;
    }
    let mut at = 0;
    for arg in area.clone().split(|b| *b == 0) {
        if let Some(word_at) = word_at(OsStr::from_bytes(arg)) {
            let from = at + word_at;
            area[from..at + arg.len()].fill(b'x');
            let _ = memory.write_all_at(&area[from..at + arg.len()], (start + from) as u64);
        }
        at += arg.len() + 1;
    }
}

/// The command in a form that may be recorded.
pub fn shown(args: &[OsString]) -> Vec<String> {
    let mut shown: Vec<String> =
        args.iter().map(|a| String::from_utf8_lossy(&a.clone().into_vec()).into_owned()).collect();
    if let Some(first) = shown.first_mut() {
        *first = "mydyno".to_owned();
    }
    shown
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn take(args: &[&str]) -> (Vec<String>, Password) {
        let line = take_password(args.iter().map(OsString::from).collect(), &crate::cli::Cli::command());
        (line.args.into_iter().map(|a| a.into_string().unwrap()).collect(), line.password)
    }

    /// Names of the verbs that have a password option.
    fn verbs_with_password() -> Vec<String> {
        let cli = crate::cli::Cli::command();
        let has = |verb: &&Command| verb.get_arguments().any(is_password);
        cli.get_subcommands().filter(has).map(|verb| verb.get_name().to_owned()).collect()
    }

    #[test]
    fn passwords_are_taken_out_of_the_arguments_of_every_verb_that_has_a_target() {
        let verbs = verbs_with_password();
        assert!(verbs.contains(&"bench".to_owned()) && verbs.contains(&"audit".to_owned()), "{verbs:?}");
        for verb in &verbs {
            for given in ["-psecret", "--password=secret"] {
                let (rest, password) = take(&["mydyno", "--quiet", verb, "w", given, "-P", "3306"]);
                assert_eq!(rest, ["mydyno", "--quiet", verb, "w", "-P", "3306"]);
                assert!(matches!(password, Password::Given(_)));
                let (rest, password) = take(&["mydyno", given, verb]);
                assert_eq!(rest, ["mydyno", verb]);
                assert!(matches!(password, Password::Given(_)));
            }
            let (rest, password) = take(&["mydyno", verb, "-Cpsecret"]);
            assert_eq!(rest, ["mydyno", verb, "-C"]);
            assert!(matches!(password, Password::Given(_)));
            for bare in ["-p", "--password"] {
                let (rest, password) = take(&["mydyno", verb, "w", bare]);
                assert_eq!(rest, ["mydyno", verb, "w"]);
                assert!(matches!(password, Password::Ask));
            }
        }
    }

    #[test]
    fn a_message_repeats_no_password_of_a_url() {
        for (text, shown) in [
            (
                "unexpected argument 'mysql://root:hunter2@db1/' found",
                "unexpected argument 'mysql://root:***@db1/' found",
            ),
            ("mysql://root:hun/ter@2@db1:3306/", "mysql://root:***@db1:3306/"),
            ("mysql://h/?password=hunter2&socket=/s\n", "mysql://h/?password=***&socket=/s\n"),
            ("mysql://u:hunter2@h/?password=hunter2\n", "mysql://u:***@h/?password=***\n"),
            ("mysql://app@h:3306/?password-file=/f", "mysql://app@h:3306/?password-file=/f"),
            ("see https://mariadb.com/kb/en/: a note", "see https://mariadb.com/kb/en/: a note"),
            ("no URL: a@b", "no URL: a@b"),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }

    #[test]
    fn the_word_after_a_bare_p_is_known() {
        let word_after = |args: &[&str]| {
            take_password(args.iter().map(OsString::from).collect(), &crate::cli::Cli::command()).word_after
        };
        assert_eq!(word_after(&["mydyno", "audit", "-p", "secret"]).as_deref(), Some("secret"));
        assert_eq!(word_after(&["mydyno", "-p", "secret", "audit"]).as_deref(), Some("secret"));
        assert_eq!(word_after(&["mydyno", "bench", "w", "-p", "--json"]), None);
        assert_eq!(word_after(&["mydyno", "bench", "w", "-psecret", "run"]), None);
    }

    #[test]
    fn other_options_are_left_alone() {
        let args = [
            "mydyno",
            "bench",
            "w",
            "--percentiles",
            "50",
            "--password-file=f",
            "--point-selects=3",
            "-uapp",
        ];
        let (rest, password) = take(&args);
        assert_eq!(rest, args);
        assert!(matches!(password, Password::NotGiven));
        for args in
            [["mydyno", "report", "-pretty"].as_slice(), &["mydyno", "server", "cli", "s", "--", "-pw"]]
        {
            assert_eq!(take(args).0, args);
        }
        let (rest, password) = take(&["mydyno", "bench", "w", "--", "-pw"]);
        assert_eq!(rest, ["mydyno", "bench", "w", "--", "-pw"]);
        assert!(matches!(password, Password::NotGiven));
    }
}
