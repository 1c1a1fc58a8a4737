//! Labels of random streams.

/// First label of the random streams: what a stream is for.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// Rows of tables.
    Data = 1,
    /// Operations of connections.
    Operations = 2,
}
