//! A command whose answer is still to be read.

use super::{Client, Done};
use crate::error::WireError;

/// A statement that was sent. The answer must be read before the connection can be used again; dropping this without
/// reading it closes the connection.
#[derive(Debug)]
#[must_use = "the connection is closed unless the answer is read"]
pub struct Sent<'a> {
    /// `None` once the answer is read.
    client: Option<&'a mut Client>,
}

impl<'a> Sent<'a> {
    pub(super) fn new(client: &'a mut Client) -> Self {
        Self { client: Some(client) }
    }

    /// Waits for the answer and drops its rows.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub fn finish(mut self) -> Result<Done, WireError> {
        match self.client.take() {
            Some(client) => client.skim(),
            None => Ok(Done::default()),
        }
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            client.channel.leave_open();
        }
    }
}
