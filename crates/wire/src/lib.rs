//! The MySQL and MariaDB client protocol: handshake, authentication, text and binary statements.
//!
//! There are two interfaces. [`Client`] is blocking and returns whole results, for control work. The load engine takes
//! the socket of an authenticated client ([`Client::into_parts`]) and drives it itself with the parts that do no I/O:
//! [`command`] and [`execute::ExecuteTemplate`] write packets, [`reply::ReplyParser`] counts the answers. [`Handshake`]
//! does no I/O either, so it can run over any transport.
//!
//! Local files are never sent: the capability is never set, and a request for one is a protocol error in every mode.

pub mod auth;
pub mod bulk;
pub mod cancel;
pub mod capability;
pub mod client;
pub mod column;
pub mod command;
pub mod envelope;
pub mod error;
pub mod execute;
pub mod greeting;
pub mod handshake;
pub mod net;
pub mod options;
pub mod packet;
mod regular;
pub mod reply;
pub mod rows;
pub mod secret;
pub mod server;
pub mod session;
pub mod session_change;
pub mod target;
pub mod value;

pub use bulk::BulkRows;
pub use cancel::CancelFlag;
pub use capability::Capabilities;
pub use client::{Client, Done, Prepared, Sent};
pub use column::Column;
pub use error::{ServerError, WireError};
pub use handshake::{Handshake, Step};
pub use options::{Compression, ConnectOptions, Endpoint, ServerKey, TlsMode, TlsOptions};
pub use rows::Rows;
pub use secret::Secret;
pub use server::{Family, ServerVersion};
pub use session::{ServerIdentity, Session};
pub use session_change::SessionChange;
pub use target::{Environment, TargetError, TargetOptions};
pub use value::Value;
