//! What can be wrong with the input of a statistic.

use thiserror::Error;

/// Why data cannot be read or a question cannot be asked. That data *do not suffice* for an answer is no error: the
/// answer says so itself.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// The text of a histogram is not base64.
    #[error("histogram: not base64 ({0}); the line of the record is damaged")]
    HistogramBase64(String),
    /// The bytes of a histogram are cut off or of another form.
    #[error("histogram: {0}; the line of the record is damaged or was not written by mydyno")]
    HistogramForm(String),
    /// The counts of a histogram contradict what stands beside them.
    #[error("histogram: {what} is {beside}, the buckets say {buckets}; the line of the record is damaged")]
    HistogramContradiction {
        /// Count, minimum or maximum.
        what: &'static str,
        /// The figure beside the buckets.
        beside: u64,
        /// What the buckets say.
        buckets: String,
    },
    /// An argument is outside its range.
    #[error("{name} is {value}; it must be {must_be}")]
    Argument {
        /// Name of the argument.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What it must be.
        must_be: &'static str,
    },
    /// Arguments that must match in length do not.
    #[error("{a} has {a_len} values, {b} has {b_len}; they must have the same number")]
    Lengths {
        /// One argument.
        a: &'static str,
        /// Its length.
        a_len: usize,
        /// The other.
        b: &'static str,
        /// Its length.
        b_len: usize,
    },
    /// A design or fit that the data cannot carry.
    #[error("{0}")]
    Design(String),
}
