//! Every shipped claim is fit for release.
#![allow(clippy::unwrap_used)]

mod remedies;
mod rendered;
mod shipped;
