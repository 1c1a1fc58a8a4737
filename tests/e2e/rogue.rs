//! Servers that mean harm, before every verb that has a target: tests/rogue/rogue.py.

use std::path::Path;
use std::process::Command;

use crate::home::{Home, binary};

/// Runs the matrix against a private server that it passes packets to.
fn matrix(options: &[&str]) {
    let home = Home::new();
    let server = home.server("rogue", &["--set", "max_connections=1000"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/rogue/rogue.py");
    let output = Command::new("python3")
        .arg(script)
        .arg(binary())
        .arg(server.port().to_string())
        .args([server.text("user"), server.text("password_file")])
        .args(options)
        .output()
        .expect("python3 is needed");
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{reported}");
    assert!(output.status.success(), "{reported}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_few_rogue_servers_end_within_their_limits_and_get_no_password() {
    matrix(&["--fast"]);
}

#[test]
#[ignore = "takes minutes: make test-rogue"]
fn all_rogue_servers_end_within_their_limits_and_get_no_password() {
    matrix(&[]);
}
