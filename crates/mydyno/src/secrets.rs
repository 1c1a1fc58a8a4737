//! Passwords on the command line: taken out before anything else sees them, and blotted out of what other users of
//! the host can read of this process.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;

use mydyno_wire::Secret;

/// What the command line said about a password.
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

/// Verbs whose `-p` is a password.
const VERBS_WITH_TARGET: &[&str] = &["bench"];

/// Takes the password out of the arguments of a verb that has a target. The rest may be recorded and shown.
pub fn take_password(args: Vec<OsString>) -> (Vec<OsString>, Password) {
    let verb = args.iter().skip(1).find(|a| !a.as_bytes().starts_with(b"-"));
    if !verb.is_some_and(|v| VERBS_WITH_TARGET.iter().any(|name| v == name)) {
        return (args, Password::NotGiven);
    }
    let mut password = Password::NotGiven;
    let mut rest = Vec::with_capacity(args.len());
    let mut args = args.into_iter();
    for arg in args.by_ref() {
        match password_in(&arg) {
            Some(b"") => password = Password::Ask,
            Some(word) => {
                password = Password::Given(Secret::from(String::from_utf8_lossy(word).into_owned()))
            }
            None if arg == "--" => {
                rest.push(arg);
                break;
            }
            None => rest.push(arg),
        }
    }
    rest.extend(args);
    if matches!(password, Password::Given(_)) {
        blot_out();
    }
    (rest, password)
}

/// The password in an argument: empty when it is to be asked for, `None` when the argument is about something else.
fn password_in(arg: &OsStr) -> Option<&[u8]> {
    let bytes = arg.as_bytes();
    match bytes {
        b"--password" => Some(b""),
        _ => bytes.strip_prefix(b"--password=").or_else(|| {
            // `-p` and what follows it at once; other short options are never joined with it.
            bytes.strip_prefix(b"-p").filter(|_| !bytes.starts_with(b"--"))
        }),
    }
}

/// Overwrites passwords in this process's command line as /proc shows it. Best effort, as in other clients: for the
/// moment between the start and this line they were visible, so a file or `-p` alone is better.
fn blot_out() {
    let Some((start, end)) = argument_area() else { return };
    let Ok(memory) = std::fs::OpenOptions::new().read(true).write(true).open("/proc/self/mem") else {
        return;
    };
    let mut area = vec![0; end - start];
    if memory.read_exact_at(&mut area, start as u64).is_err() {
        return;
    }
    let mut at = 0;
    for arg in area.clone().split(|b| *b == 0) {
        if let Some(word) = password_in(OsStr::from_bytes(arg)).filter(|w| !w.is_empty()) {
            let from = at + arg.len() - word.len();
            area[from..at + arg.len()].fill(b'x');
            let _ = memory.write_all_at(&area[from..at + arg.len()], (start + from) as u64);
        }
        at += arg.len() + 1;
    }
}

/// Where the arguments lie: fields 48 and 49 of /proc/self/stat (proc(5): `arg_start`, `arg_end`).
fn argument_area() -> Option<(usize, usize)> {
    let stat = std::fs::read("/proc/self/stat").ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    // The second field is a name in parentheses that may hold anything.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 2..)?.split(' ').collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<usize>().ok().filter(|n| *n > 0);
    Some((number(48)?, number(49)?)).filter(|(start, end)| start < end)
}

/// The command as it may be recorded.
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
    use super::*;

    fn take(args: &[&str]) -> (Vec<String>, Password) {
        let (rest, password) = take_password(args.iter().map(OsString::from).collect());
        (rest.into_iter().map(|a| a.into_string().unwrap()).collect(), password)
    }

    #[test]
    fn passwords_are_taken_out_of_the_arguments() {
        let (rest, password) = take(&["mydyno", "bench", "w", "-psecret", "-P", "3306"]);
        assert_eq!(rest, ["mydyno", "bench", "w", "-P", "3306"]);
        assert!(matches!(password, Password::Given(_)));
        let (rest, password) = take(&["mydyno", "bench", "w", "--password=secret"]);
        assert_eq!(rest, ["mydyno", "bench", "w"]);
        assert!(matches!(password, Password::Given(_)));
    }

    #[test]
    fn a_bare_p_asks() {
        let (rest, password) = take(&["mydyno", "bench", "w", "-p"]);
        assert_eq!(rest, ["mydyno", "bench", "w"]);
        assert!(matches!(password, Password::Ask));
    }

    #[test]
    fn other_options_are_left_alone() {
        let args = ["mydyno", "bench", "w", "--percentiles", "50", "--password-file=f", "--point-selects=3"];
        let (rest, password) = take(&args);
        assert_eq!(rest, args);
        assert!(matches!(password, Password::NotGiven));
        let (rest, _) = take(&["mydyno", "report", "-pretty"]);
        assert_eq!(rest, ["mydyno", "report", "-pretty"]);
    }
}
