//! Embeds the files of `experiments/`.

include!("../../scripts/embed.rs");

fn main() {
    embed("experiments");
}
