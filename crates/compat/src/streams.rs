//! The standard streams of a program, given by the caller.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use mydyno_model::text::visible;

/// Input, output and error stream; clones share them.
#[derive(Clone)]
pub struct Streams {
    output: Arc<Mutex<Box<dyn Write + Send>>>,
    errors: Arc<Mutex<Box<dyn Write + Send>>>,
    input: Arc<Mutex<Box<dyn Read + Send>>>,
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Streams")
    }
}

impl Streams {
    /// Streams that write to and read from these.
    pub fn new(
        output: impl Write + Send + 'static,
        errors: impl Write + Send + 'static,
        input: impl Read + Send + 'static,
    ) -> Self {
        Self {
            output: Arc::new(Mutex::new(Box::new(output))),
            errors: Arc::new(Mutex::new(Box::new(errors))),
            input: Arc::new(Mutex::new(Box::new(input))),
        }
    }

    /// Writes to the output. A failure is ignored, as by the programs whose place this takes: the reader has gone.
    pub(crate) fn output(&self, text: &[u8]) {
        write(&self.output, text);
    }

    /// Writes to the error stream; failures are ignored. Messages repeat words of the command line and of servers, whose
    /// control characters become visible.
    pub(crate) fn errors(&self, text: &[u8]) {
        write(&self.errors, visible(&String::from_utf8_lossy(text)).as_bytes());
    }

    /// All that is left of the input.
    pub(crate) fn read_input(&self) -> std::io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.input.lock().unwrap_or_else(PoisonError::into_inner).read_to_end(&mut text)?;
        Ok(text)
    }
}

fn write(stream: &Mutex<Box<dyn Write + Send>>, text: &[u8]) {
    let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = stream.write_all(text).and_then(|()| stream.flush());
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A stream that tests can read.
    #[derive(Clone, Default)]
    pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        pub(crate) fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
        }
    }

    impl Write for Captured {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Streams with this input, their output and their error stream.
    pub(crate) fn capture(input: &str) -> (Streams, Captured, Captured) {
        let (output, errors) = (Captured::default(), Captured::default());
        let input = std::io::Cursor::new(input.to_owned().into_bytes());
        (Streams::new(output.clone(), errors.clone(), input), output, errors)
    }
}
