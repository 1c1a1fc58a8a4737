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
    // Scripts of sysbench may load modules in C, which look for LuaJIT's functions in the program. A static one loads none.
    // The linker of zig, which `make dist` takes for older systems, has no such option.
    let by_zig = std::env::var("RUSTC_LINKER").is_ok_and(|linker| linker.contains("zig"));
    if !by_zig && std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        for functions in ["lua_*", "luaL_*", "luaopen_*"] {
            println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={functions}");
        }
    }
}

/// The one line that git prints; `None` where this is no checkout, or git is missing.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
