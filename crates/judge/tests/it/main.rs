//! Every claim that is shipped is fit to be shipped.
#![allow(clippy::unwrap_used)]

mod shipped;
