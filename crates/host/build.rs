//! Builds the library that delays syncs with this package's compiler, for the same target.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = "shim/sync_delay.rs";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rerun-if-changed=build.rs");
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let out = Path::new(&out);
    let library = out.join("sync_delay.so");
    // Without the library the program is complete, and the lever reports what is missing.
    let missing = build(&library).err().unwrap_or_default();
    if !missing.is_empty() {
        println!("cargo:warning=server.sync_delay cannot be turned by this build: {missing}");
        fs::write(&library, "")?;
    }
    fs::write(out.join("sync_delay.missing"), missing)
}

/// Builds it; the error is one line.
fn build(library: &Path) -> Result<(), String> {
    let variable = |name: &str| env::var_os(name).ok_or_else(|| format!("there is no {name}"));
    let is = |name: &str, value: &str| env::var_os(name).is_some_and(|found| found == value);
    let mut rustc = Command::new(variable("RUSTC")?);
    // The package's flags do not apply: the library cannot contain profilers and sanitizers.
    rustc.args(["--edition=2024", "--crate-type=cdylib", "--crate-name=sync_delay", "--target"]);
    rustc.arg(variable("TARGET")?);
    rustc.args(["-Cpanic=abort", "-Copt-level=s", "-Cstrip=symbols", "-Clink-arg=-nostartfiles"]);
    // Some linkers name the C library on their own account, and a server of another one cannot load it then.
    rustc.arg("-Clink-arg=-nostdlib");
    if is("CARGO_CFG_TARGET_ENV", "musl") {
        rustc.arg("-Ctarget-feature=-crt-static");
    }
    // Otherwise a constructor asks the C library which atomics the CPU supports.
    if is("CARGO_CFG_TARGET_ARCH", "aarch64") {
        rustc.arg("-Ctarget-feature=-outline-atomics");
    }
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("-Clinker=");
        option.push(linker);
        rustc.arg(option);
    }
    rustc.arg("-o").arg(library).arg(SOURCE);
    let output = rustc.output().map_err(|e| format!("{}: {e}", rustc.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    let error = reported.lines().find(|line| line.starts_with("error")).or(reported.lines().next());
    Err(error.unwrap_or("its compiler failed").to_owned())
}
