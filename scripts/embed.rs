// Part of build scripts, by `include!`: embeds data files in a crate.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes `NAME.rs` into OUT_DIR: a slice of (name, text) of the TOML files of the folder `NAME` of this repository, those of its
/// subfolders included, sorted by name. Names are relative to the folder, as in `durability/binlog.toml`.
fn embed(name: &str) {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..").join(name);
    let root = root.canonicalize().unwrap_or(root);
    let mut files = Vec::new();
    find(&root, &mut files);
    files.sort();
    let mut code = String::from("&[\n");
    for path in files {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.strip_prefix(&root).unwrap_or(&path);
        // Debug formatting writes paths and names as Rust literals.
        let _ = writeln!(code, "    ({:?}, include_str!({path:?})),", name.display().to_string());
    }
    code.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join(format!("{name}.rs"));
    if let Err(error) = fs::write(&out, code) {
        println!("cargo:error={}: {error}", out.display());
    }
}

/// Adds the TOML files of a folder and of its subfolders.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    // A new file changes the modification time of its folder.
    println!("cargo:rerun-if-changed={}", folder.display());
    for path in fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
}
