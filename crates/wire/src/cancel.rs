//! Ending calls that block.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that another thread or a signal handler sets to end blocking calls. They end within a tenth of a second:
/// [`crate::net::Socket`]'s with [`std::io::ErrorKind::Interrupted`], a client's with
/// [`crate::WireError::Cancelled`].
pub type CancelFlag = Arc<AtomicBool>;
