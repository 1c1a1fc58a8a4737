//! Purposes of changes, as the journal stores them.

const SERVER: &str = "server ";
const DATA: &str = "data ";

/// The purpose for a private server.
pub(crate) fn of_server(name: &str) -> String {
    format!("{SERVER}{name}")
}

/// The private server of a purpose.
pub(crate) fn server_of(purpose: &str) -> Option<&str> {
    purpose.strip_prefix(SERVER)
}

/// The purpose for kept data.
pub(crate) fn of_data(name: &str) -> String {
    format!("{DATA}{name}")
}

/// Whether a purpose is that of kept data.
pub(crate) fn is_of_data(purpose: &str) -> bool {
    purpose.starts_with(DATA)
}
