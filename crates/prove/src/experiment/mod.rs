//! Experiments as files: the catalogue in the program, folders of the user's own, and their examination.

mod catalogue;
mod claim;
mod examine;
mod extent;
mod load;
mod mistake;
mod needs;
mod probing;
mod reading;
mod wanted;

pub use catalogue::{Experiment, Experiments};
pub use claim::{of_claim, unnamed, unresolved};
pub use examine::examine;
pub(crate) use extent::times;
pub use load::{of_options, resolve};
pub use mistake::Mistake;
pub use needs::unmet;
pub use probing::probing;
pub use wanted::DEFAULT_SEED;
