//! The binary as its users meet it, against real servers.
