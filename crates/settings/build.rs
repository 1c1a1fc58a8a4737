//! Embeds the files of `knobs/`.

include!("../../scripts/embed.rs");

fn main() {
    embed("knobs");
}
