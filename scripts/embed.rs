// Part of build scripts, by `include!`: embeds data files in a crate.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Writes `NAME.rs` into OUT_DIR: an `Embedded` of the TOML files of the folder `NAME` of this repository, those of its subfolders
/// included, sorted by name. Names are relative to the folder, as in `durability/binlog.toml`. The texts are compressed: they would be
/// a tenth of the program.
fn embed(name: &str) {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..").join(name);
    let root = root.canonicalize().unwrap_or(root);
    let mut files = Vec::new();
    find(&root, &mut files);
    files.sort();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let packed = out.join(format!("{name}.z"));
    // Debug formatting writes the path as a Rust literal.
    let code = format!("mydyno_model::embedded::Embedded::new(include_bytes!({packed:?}))");
    let written = pack(&root, &files).and_then(|bytes| fs::write(&packed, bytes));
    if let Err(error) = written.and_then(|()| fs::write(out.join(format!("{name}.rs")), code)) {
        println!("cargo:error={name}: {error}");
    }
}

/// Names and texts of files, each ended by a zero byte, compressed.
fn pack(root: &Path, files: &[PathBuf]) -> std::io::Result<Vec<u8>> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    for path in files {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.strip_prefix(root).unwrap_or(path);
        write!(packed, "{}\0{}\0", name.display(), fs::read_to_string(path)?)?;
    }
    packed.finish()
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
