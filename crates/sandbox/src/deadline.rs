//! Runs programs with a deadline and reads their output.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are read of each stream; versions and messages are shorter.
const OUTPUT_BYTES: u64 = 64 << 10;

/// Output of a program.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program and returns its output; `None` if it exceeded the time limit and was killed.
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let deadline = Instant::now() + limit;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().map(read_in_background);
    let stderr = child.stderr.take().map(read_in_background);
    if wait_until(&mut child, deadline)?.is_none() {
        let _ = child.kill();
        child.wait()?;
        return Ok(None);
    }
    // A child of the program may hold the pipe open; its output is not needed.
    let text = |output: Option<mpsc::Receiver<String>>| {
        output.and_then(|output| output.recv_timeout(Duration::from_secs(1)).ok()).unwrap_or_default()
    };
    Ok(Some(Output { stdout: text(stdout), stderr: text(stderr) }))
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

fn read_in_background(pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(OUTPUT_BYTES).read_to_end(&mut bytes);
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_returned_and_a_program_that_hangs_is_killed() {
        let output = run(Command::new("echo").arg("Ver 1"), Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("Ver 1\n", ""));
        let begin = Instant::now();
        assert!(run(Command::new("sleep").arg("600"), Duration::from_millis(20)).unwrap().is_none());
        assert!(begin.elapsed() < Duration::from_secs(60));
        // A program with endless output ends too, because its pipe is closed.
        assert!(run(&mut Command::new("yes"), Duration::from_secs(60)).is_ok());
    }
}
