//! Embeds the claims and the rules.

include!("../../scripts/embed.rs");

fn main() {
    embed("claims");
    embed("rules");
}
