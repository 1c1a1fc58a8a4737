//! Runs programs with a deadline and reads their output.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// More than any version or message needs.
const ANSWER_BYTES: u64 = 64 << 10;

/// Output of a program.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program to its end and gives what it said; `None` when it had to be killed because it took longer.
pub(crate) fn ask(command: &mut Command, patience: Duration) -> io::Result<Option<Answer>> {
    let deadline = Instant::now() + patience;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().map(said);
    let stderr = child.stderr.take().map(said);
    if wait_until(&mut child, deadline)?.is_none() {
        let _ = child.kill();
        child.wait()?;
        return Ok(None);
    }
    // A child of the program may hold the pipe open; what it says does not matter.
    let text = |said: Option<mpsc::Receiver<String>>| {
        said.and_then(|said| said.recv_timeout(Duration::from_secs(1)).ok()).unwrap_or_default()
    };
    Ok(Some(Answer { stdout: text(stdout), stderr: text(stderr) }))
}

/// Waits for a child until a deadline.
pub(crate) fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        let ended = child.try_wait()?;
        if ended.is_some() || Instant::now() >= deadline {
            return Ok(ended);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn said(pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(ANSWER_BYTES).read_to_end(&mut bytes);
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_answers_is_heard_and_one_that_hangs_is_ended() {
        let answer = ask(Command::new("echo").arg("Ver 1"), Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("Ver 1\n", ""));
        let begin = Instant::now();
        assert!(ask(Command::new("sleep").arg("600"), Duration::from_millis(20)).unwrap().is_none());
        assert!(begin.elapsed() < Duration::from_secs(60));
        // One that says without end is ended too.
        assert!(ask(&mut Command::new("yes"), Duration::from_secs(60)).is_ok());
    }
}
