//! Errors in the input of a statistic.

use thiserror::Error;

/// The reasons why data cannot be read or a question cannot be computed. *Insufficient* data are not an error: the result then
/// says so.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// The text of a histogram is not base64.
    #[error("histogram: not base64 ({0}); the line of the record is damaged")]
    HistogramBase64(String),
    /// The bytes of a histogram are truncated or in another format.
    #[error("histogram: {0}; the line of the record is damaged or was not written by mydyno")]
    HistogramForm(String),
    /// The counts of a histogram contradict the figures stored beside them.
    #[error("histogram: {what} is {beside}, the buckets say {buckets}; the line of the record is damaged")]
    HistogramContradiction {
        /// Count, minimum or maximum.
        what: &'static str,
        /// The figure stored beside the buckets.
        beside: u64,
        /// The value from the buckets.
        buckets: String,
    },
    /// An argument is outside its range.
    #[error("{name} is {value}; it must be {must_be}")]
    Argument {
        /// Name of the argument.
        name: &'static str,
        /// The value of the argument.
        value: f64,
        /// The valid range.
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
    /// A design or fit that the data cannot support.
    #[error("{0}")]
    Design(String),
}
