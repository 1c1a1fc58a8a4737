//! Facts of another host: mydyno sends its own program over ssh, runs it in a temporary folder, and removes the folder.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use mydyno_model::Document as _;
use mydyno_model::facts::FactSet;

use crate::bundle::LARGEST;
use crate::cancel::Cancellation;
use crate::error::FactsError;

/// The shell script that runs on the remote host. It receives the program on its standard input and removes its folder on
/// every exit.
const SCRIPT: &str = "set -e; umask 077; d=$(mktemp -d); trap 'rm -rf \"$d\"' EXIT; trap 'exit 1' HUP INT TERM PIPE; cat >\"$d/mydyno\"; chmod 700 \"$d/mydyno\"; \"$d/mydyno\"";

/// A host that the system's ssh client reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// `host` or `user@host`, or a name of the ssh client's configuration.
    pub host: String,
    /// The ssh client.
    pub client: OsString,
    /// The program that is sent: this one.
    pub program: PathBuf,
    /// Time limit.
    pub limit: Duration,
    /// Ends the look early.
    pub cancellation: Cancellation,
}

impl Remote {
    /// A host reached by `ssh`, with a limit of one minute for sending the program and receiving its answer.
    ///
    /// # Errors
    /// The name could be taken for an option of ssh, or this program's own file is not known.
    pub fn new(host: &str) -> Result<Self, FactsError> {
        // ssh would take a name that begins with a hyphen for an option, and options of ssh can run programs.
        let odd = host.is_empty()
            || host.starts_with('-')
            || host.contains(|c: char| c.is_whitespace() || c.is_control());
        if odd {
            return Err(FactsError::RemoteName(host.to_owned()));
        }
        let program = std::env::current_exe().map_err(|source| FactsError::Remote {
            host: host.to_owned(),
            why: format!("this program's own file is not known: {source}"),
        })?;
        Ok(Self {
            host: host.to_owned(),
            client: "ssh".into(),
            program,
            limit: Duration::from_secs(60),
            cancellation: Cancellation::default(),
        })
    }

    /// Runs this program on the host with `arguments`, which must make it print facts, and parses these.
    ///
    /// # Errors
    /// The host cannot be reached; the program does not run there, gives no facts or takes too long.
    pub fn facts(&self, arguments: &[&str]) -> Result<FactSet, FactsError> {
        let failed = |why: String| FactsError::Remote { host: self.host.clone(), why };
        let Answer { status, out, err } = self.run(arguments).map_err(failed)?;
        let reported = String::from_utf8_lossy(&err).trim().chars().take(600).collect::<String>();
        match status {
            Some(0) => {}
            // ssh reports its own failures with exit status 255.
            Some(255) => return Err(failed(format!("ssh failed: {reported}"))),
            Some(126 | 127) => {
                return Err(failed(format!(
                    "the program cannot run there ({reported}): another architecture, an older system, or a temporary folder mounted noexec; set TMPDIR there, or run mydyno there with --save"
                )));
            }
            Some(code) => return Err(failed(format!("mydyno ended there with status {code}: {reported}"))),
            None => return Err(failed(format!("ssh was ended by a signal: {reported}"))),
        }
        let text = String::from_utf8(out).map_err(|_| failed("its answer is not text".to_owned()))?;
        FactSet::from_json(&text).map_err(|e| {
            failed(format!("its answer holds no facts ({e}); a shell that prints at login would do this"))
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut script = SCRIPT.to_owned();
        for argument in arguments {
            script.push(' ');
            script.push_str(&shell_quoted(argument));
        }
        let mut command = Command::new(&self.client);
        command.args(["-T", "--", &self.host]).arg(script);
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<Answer, String> {
        let program = open(&self.program).map_err(|e| format!("{}: {e}", self.program.display()))?;
        let mut child = self
            .command(arguments)
            .stdin(Stdio::from(program))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| {
                format!("{} cannot be started: {e}; install an ssh client", self.client.to_string_lossy())
            })?;
        let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
        let status = wait(&mut child, self.limit, &self.cancellation)?;
        let taken = |stream: Receiver<io::Result<Vec<u8>>>| {
            stream.recv_timeout(Duration::from_secs(5)).ok().and_then(Result::ok).unwrap_or_default()
        };
        Ok(Answer { status, out: taken(out), err: taken(err) })
    }
}

/// The result of a command.
struct Answer {
    /// Exit status; `None` when a signal ended it.
    status: Option<i32>,
    out: Vec<u8>,
    err: Vec<u8>,
}

fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads a stream in a thread of its own, so that full pipes cannot block either side.
fn drain<R: io::Read + Send + 'static>(stream: Option<R>) -> Receiver<io::Result<Vec<u8>>> {
    let (tell, stated) = channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stream.take(LARGEST).read_to_end(&mut bytes).map(|_| bytes);
            // The receiver is gone once the time limit has passed.
            let _ = tell.send(read);
        });
    }
    stated
}

/// Waits for a child and returns its exit status; a child that exceeds the limit or is cancelled is killed.
fn wait(child: &mut Child, limit: Duration, cancellation: &Cancellation) -> Result<Option<i32>, String> {
    let until = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.code()),
            Ok(None) if Instant::now() < until && !cancellation.is_set() => {
                thread::sleep(Duration::from_millis(10))
            }
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                if cancellation.is_set() {
                    return Err("interrupted".to_owned());
                }
                return Err(format!("no answer within {} s", limit.as_secs()));
            }
            Err(e) => return Err(e.to_string()),
        }
    }
}

/// Quotes a text as one word for a POSIX shell.
fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// A stand-in for ssh that runs the command on this host.
    fn remote(program: &str, limit: Duration) -> (tempfile::TempDir, Remote) {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            // Written by another process: a test beside this one that forks meanwhile would keep it open for writing, and
            // a program that is open for writing cannot be started.
            let copied = folder.path().join("text");
            std::fs::write(&copied, text).unwrap();
            assert!(Command::new("cp").arg(&copied).arg(&path).status().unwrap().success());
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
            path
        };
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        let tmp = folder.path().join("tmp").display().to_string();
        let client = script(
            "ssh",
            &format!(
                "#!/bin/sh\n[ \"$1 $2 $3\" = '-T -- u@h' ] || exit 255\nTMPDIR='{tmp}' exec sh -c \"$4\"\n"
            ),
        );
        let program = script("program", program);
        let mut remote = Remote::new("u@h").unwrap();
        (remote.client, remote.program, remote.limit) = (client.into(), program, limit);
        (folder, remote)
    }

    const BUNDLE: &str = r#"{"schema":"mydyno.facts/1","created":"x","mydyno":{"version":"0.1.0","commit":"c"},"facts":{"host.name":{"value":"ARGS","source":"s","status":"ok"}}}"#;

    fn left(folder: &tempfile::TempDir) -> usize {
        std::fs::read_dir(folder.path().join("tmp")).unwrap().count()
    }

    #[test]
    fn the_program_runs_there_with_its_arguments_and_is_removed() {
        let answer = BUNDLE.replace("ARGS", "%s");
        let (folder, remote) =
            remote(&format!("#!/bin/sh\nprintf '{answer}' \"$1|$2\"\n"), Duration::from_secs(20));
        let facts = remote.facts(&["it's", "$HOME `x`"]).unwrap();
        assert_eq!(facts.text("host.name"), Some("it's|$HOME `x`"));
        assert_eq!(left(&folder), 0);
    }

    #[test]
    fn what_goes_wrong_there_is_said_and_nothing_is_left() {
        for (program, expected) in [
            ("#!/bin/sh\necho no such account >&2\nexit 3\n", "status 3: no such account"),
            ("#!/bin/sh\necho Welcome\n", "holds no facts"),
            ("#!/no/such/interpreter\n", "cannot run there"),
            ("#!/bin/sh\nexit 255\n", "ssh failed"),
        ] {
            let (folder, remote) = remote(program, Duration::from_secs(20));
            let error = remote.facts(&[]).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("u@h"), "{error}");
            assert_eq!(left(&folder), 0, "{program}");
        }
    }

    #[test]
    fn a_host_that_does_not_answer_is_given_up() {
        let (_folder, remote) = remote("#!/bin/sh\nexec sleep 60\n", Duration::from_millis(200));
        let error = remote.facts(&[]).unwrap_err().to_string();
        assert!(error.contains("no answer within"), "{error}");
    }

    #[test]
    fn a_host_that_does_not_answer_can_be_interrupted() {
        let (_folder, mut remote) = remote("#!/bin/sh\nexec sleep 86400\n", Duration::from_secs(86_400));
        remote.cancellation = Cancellation::by(&std::sync::Arc::new(true.into()));
        let error = remote.facts(&[]).unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
    }

    #[test]
    fn a_name_that_ssh_would_take_for_an_option_is_refused() {
        for host in ["", "-oProxyCommand=x", "a b", "a\n"] {
            assert!(matches!(Remote::new(host), Err(FactsError::RemoteName(_))), "{host}");
        }
    }

    #[test]
    fn a_missing_client_is_named() {
        let mut remote = Remote::new("h").unwrap();
        remote.client = "/no/such/ssh".into();
        assert!(remote.facts(&[]).unwrap_err().to_string().contains("install an ssh client"));
    }
}
