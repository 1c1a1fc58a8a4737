//! Golden files: outputs that must not change between versions.

use std::path::Path;

use mydyno_wire::Value;

/// Compares a text with the recorded one. `MYDYNO_WRITE_GOLDEN=1` records it again, for an intended change that its
/// commit explains.
pub fn same(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("MYDYNO_WRITE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|e| {
        panic!(
            "{}: {e}: MYDYNO_WRITE_GOLDEN=1 cargo test -p mydyno-workload --lib records it",
            path.display()
        )
    });
    let differs = kept.lines().zip(text.lines()).position(|(kept, now)| kept != now);
    assert!(
        kept == text,
        "{} differs from line {:?} (from 0) on: data and operations of a seed may never change",
        path.display(),
        differs
    );
}

/// The first transactions of two connections, a statement a line.
pub fn stream<W: crate::Workload>(workload: &W, transactions: usize) -> String {
    // Long enough for any statement that keeps a row.
    let row: Vec<Value> = (1..=32).map(Value::Int).collect();
    let mut text = String::new();
    for connection in [0, 1] {
        text.push_str(&format!("# connection {connection}\n"));
        crate::transcript::replay_with_row(workload, connection, transactions, Some(&row), &mut |asked| {
            text.push_str(&format!("{asked}\n"));
        });
    }
    text
}
