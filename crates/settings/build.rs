//! Embeds the files of `knobs/`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    embed("knobs");
}

/// Writes `NAME.rs`: the files `FOLDER/FILE.toml` of a folder beside the crates, with their texts.
fn embed(name: &str) {
    let root =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..").join(name);
    let root = root.canonicalize().unwrap_or(root);
    println!("cargo:rerun-if-changed={}", root.display());
    let mut code = String::from("&[\n");
    for folder in fs::read_dir(&root).into_iter().flatten().filter_map(Result::ok) {
        // A file that is added changes its folder.
        println!("cargo:rerun-if-changed={}", folder.path().display());
    }
    for path in files(&root) {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.strip_prefix(&root).unwrap_or(&path);
        // Debug writes paths and names as Rust's own literals.
        let _ = writeln!(code, "    ({:?}, include_str!({:?})),", name.display().to_string(), path);
    }
    code.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join(format!("{name}.rs"));
    if let Err(error) = fs::write(&out, code) {
        println!("cargo:error={}: {error}", out.display());
    }
}

/// `FOLDER/FILE.toml`, sorted.
fn files(root: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let read = fs::read_dir(folder).into_iter().flatten();
        read.filter_map(|e| e.ok().map(|e| e.path())).collect()
    };
    let mut found: Vec<PathBuf> = entries(root)
        .iter()
        .filter(|p| p.is_dir())
        .flat_map(|p| entries(p))
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .filter_map(|p| p.canonicalize().ok())
        .collect();
    found.sort();
    found
}
