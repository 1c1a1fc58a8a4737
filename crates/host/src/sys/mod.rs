//! System calls that neither the standard library nor `rustix` offers.

pub mod emulated;
pub mod loops;
pub mod storage;
pub mod task;
pub mod user;
