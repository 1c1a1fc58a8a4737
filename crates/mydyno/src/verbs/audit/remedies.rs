//! `--fix`: the remedies as a folder of files.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use mydyno_judge::{Fragment, fix};
use mydyno_model::finding::Findings;

use crate::failure::Failure;
use crate::ui::Ui;

/// Writes the remedies into a new folder; no existing file is overwritten. `fragment` is the folder whose files the
/// server reads last.
pub fn write(folder: &Path, findings: &Findings, fragment: &Fragment, ui: &Ui) -> Result<(), Failure> {
    let files = fix(findings, fragment);
    if files.is_empty() {
        ui.note("There is nothing to correct, so no remedies are written");
        return Ok(());
    }
    let failed =
        |path: &Path, e: std::io::Error| Failure::environment(format!("--fix {}: {e}", path.display()));
    let make = |path: &Path, below: bool| {
        std::fs::DirBuilder::new().mode(0o700).recursive(below).create(path).map_err(|e| failed(path, e))
    };
    make(folder, false)?;
    let written = files.iter().try_for_each(|file| {
        let path = folder.join(file.path);
        if let Some(parent) = path.parent() {
            make(parent, true)?;
        }
        let mode = if file.path.ends_with(".sh") { 0o700 } else { 0o600 };
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)
            .and_then(|mut f| f.write_all(file.text.as_bytes()))
            .map_err(|e| failed(&path, e))
    });
    if written.is_err() {
        // Half of the remedies could be applied by mistake.
        let _ = std::fs::remove_dir_all(folder);
    }
    written?;
    ui.note(&format!(
        "Remedies written to {}: start with README.md there. Nothing has been applied",
        folder.display()
    ));
    Ok(())
}
