//! Embeds the files of `experiments/`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = root.join("../../experiments");
    let root = root.canonicalize().unwrap_or(root);
    // A file that is added changes its folder.
    println!("cargo:rerun-if-changed={}", root.display());
    let entries = fs::read_dir(&root).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    let mut code = String::from("&[\n");
    for path in files {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Debug writes paths and names as Rust's own literals.
        let _ = writeln!(code, "    ({name:?}, include_str!({path:?})),");
    }
    code.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("experiments.rs");
    if let Err(error) = fs::write(&out, code) {
        println!("cargo:error={}: {error}", out.display());
    }
}
