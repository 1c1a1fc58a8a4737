//! Stamps the commit that a binary was built from, so that every document can name it.
//!
//! It stands in the uppermost crate, so that a commit does not compile the crates below it again.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=MYDYNO_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    // Asked of git, because these files are elsewhere in a linked work tree.
    for name in ["HEAD", "refs/heads"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = std::env::var("MYDYNO_COMMIT").ok().or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    println!("cargo:rustc-env=MYDYNO_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

/// What git prints on its one line; `None` where this is no checkout, or git is missing.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
