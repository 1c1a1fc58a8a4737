//! Facts and samples of host and server.
