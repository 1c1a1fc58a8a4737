//! Purposes of changes: the words under which the journal keeps them.

const SERVER: &str = "server ";
const DATA: &str = "data ";

/// For a private server.
pub(crate) fn of_server(name: &str) -> String {
    format!("{SERVER}{name}")
}

/// The private server that a change was made for.
pub(crate) fn server_of(purpose: &str) -> Option<&str> {
    purpose.strip_prefix(SERVER)
}

/// For kept data.
pub(crate) fn of_data(name: &str) -> String {
    format!("{DATA}{name}")
}

/// Whether a change was made for kept data.
pub(crate) fn is_of_data(purpose: &str) -> bool {
    purpose.starts_with(DATA)
}
