//! Stamps the commit that a binary was built from, so that every document can name it.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=MYDYNO_COMMIT");
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/refs/heads");
    let commit = std::env::var("MYDYNO_COMMIT").ok().or_else(git_commit);
    println!("cargo:rustc-env=MYDYNO_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

fn git_commit() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
