//! The test `fileio` beside that of sysbench, each in a folder of its own.

use std::process::Command;

use crate::compat::{comparable, is_there};
use crate::fixture::Ended;
use crate::home::Home;

/// Command lines in their order; `@` stands for two files of 512 KiB.
const LINES: &str = "
    fileio
    fileio help
    fileio nope
    fileio --foo=1 run
    fileio @ prepare
    fileio @ prepare
    fileio @ run
    fileio @ --file-test-mode=x run
    fileio @ --file-test-mode=x prepare
    fileio @ --file-test-mode=rndrd --events=40 run
    fileio @ --file-test-mode=rndwr --events=250 run
    fileio @ --file-test-mode=rndrw --events=40 run
    fileio @ --file-test-mode=rndrw --events=40 --threads=3 run
    fileio @ --file-test-mode=seqrd --events=100 run
    fileio @ --file-test-mode=seqrewr --events=100 run
    fileio @ --file-test-mode=seqrd --file-merged-requests=4 --events=40 run
    fileio @ --file-test-mode=rndrw --file-io-mode=mmap --events=40 run
    fileio @ --file-test-mode=rndrd --file-io-mode=async --events=40 run
    fileio @ --file-test-mode=rndrd --file-io-mode=async --file-async-backlog=2 --time=1 run
    fileio @ --file-test-mode=rndrw --file-io-mode=async --file-async-backlog=0 run
    fileio @ --file-test-mode=rndrw --file-io-mode=x run
    fileio @ --file-test-mode=rndrw --file-extra-flags=direct --events=20 run
    fileio @ --file-test-mode=rndrw --file-extra-flags=dsync --events=4 run
    fileio @ --file-test-mode=rndrw --file-extra-flags=sync --events=4 run
    fileio @ --file-test-mode=rndrw --file-extra-flags=x run
    fileio @ --file-test-mode=rndwr --file-fsync-freq=0 --file-fsync-end=off --events=20 run
    fileio @ --file-test-mode=rndwr --file-fsync-freq=10 --events=20 run
    fileio @ --file-test-mode=rndwr --file-fsync-all --events=20 run
    fileio @ --file-test-mode=rndwr --file-fsync-mode=fdatasync --events=20 run
    fileio @ --file-test-mode=rndwr --file-fsync-mode=x run
    fileio @ --file-test-mode=rndrw --file-rw-ratio=3 --events=40 run
    fileio @ --file-test-mode=rndrw --file-rw-ratio=0 --events=40 run
    fileio @ --file-test-mode=rndrw --file-rw-ratio=-1 run
    fileio @ --file-test-mode=rndrw --file-merged-requests=-1 run
    fileio @ --file-test-mode=rndrw --file-block-size=1000 --events=9 run
    fileio @ --file-test-mode=rndrw --file-block-size=4K --events=9 run
    fileio @ --file-test-mode=rndrw --file-block-size=0 run
    fileio @ --file-test-mode=rndrw --time=2 --report-interval=1 run
    fileio @ --file-test-mode=rndrw --time=2 --report-checkpoints=1 run
    fileio @ --file-test-mode=rndrw --verbosity=2 --events=3 run
    fileio @ --file-num=0 --file-test-mode=rndrw run
    fileio @ --file-num=0 prepare
    fileio --file-num=3 --file-total-size=9M --file-test-mode=rndrw run
    fileio --file-num=2 --file-total-size=0 --file-test-mode=rndrw run
    fileio --file-num=3 --file-total-size=2M prepare
    fileio --file-num=3 --file-total-size=2M --file-test-mode=seqwr --events=200 run
    fileio --file-num=3 --file-total-size=2M --file-test-mode=seqrd --events=10 run
    fileio --file-num=3 cleanup
    fileio --file-num=3 cleanup
    fileio @ --file-test-mode=rndrd run
    memory --memory-hugetlb --memory-total-size=1M run
";

#[test]
fn fileio_ends_as_in_sysbench() {
    if !is_there("sysbench") {
        return;
    }
    let home = Home::new();
    let folders = ["theirs", "ours"].map(|name| home.path().join(name));
    folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let mut different = Vec::new();
    for line in LINES.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = line.replace('@', "--file-num=2 --file-total-size=1M");
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let end = || {
            let mut theirs = Command::new("timeout");
            theirs.args(["30", "sysbench"]).args(&words).current_dir(&folders[0]);
            let mut ours = home.command(&[&["sysbench"], words.as_slice()].concat());
            ours.current_dir(&folders[1]);
            [theirs.output(), ours.output()].map(|output| Ended::from(output.unwrap()))
        };
        // Without a mode the help of the test follows, which is our own.
        let shown = if line.ends_with("1M run") { "help" } else { &line };
        let view = |ended: &Ended| {
            (ended.status, comparable(shown, &ended.stdout), comparable(shown, &ended.stderr))
        };
        // A machine that stands still for a second takes the report of that second from one of the two. A difference
        // between the programs comes each time. All other lines are compared once.
        let attempts = if line.contains("--report-") { 3 } else { 1 };
        let ended: Vec<_> = (0..attempts).map(|_| end()).take_while(|[a, b]| view(a) != view(b)).collect();
        if ended.len() == attempts {
            different.push(format!("{line}\n{ended:#?}"));
        }
    }
    assert!(different.is_empty(), "{}:\n{}", different.len(), different.join("\n\n"));
}

#[test]
fn blocks_with_checksums_are_validated_and_changes_of_a_file_are_found() {
    let home = Home::new();
    let files = "--file-num=2 --file-total-size=1M --validate";
    let end =
        |words: &str| home.end(&format!("sysbench fileio {files} {words}").split(' ').collect::<Vec<_>>());
    assert_eq!(end("prepare").status, 0);
    for mode in ["rndrd", "rndrw", "seqrd"] {
        let ended = end(&format!("--file-test-mode={mode} --events=200 run"));
        assert_eq!(ended.status, 0, "{ended:?}");
    }
    let path = home.path().join("test_file.1");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let ended = end("--file-test-mode=seqrd --events=200 run");
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(
        ended.stdout.contains("FATAL: Validation failed on file 1, block offset 0, exiting...\n"),
        "{ended:?}"
    );
    assert_eq!((end("cleanup").status, path.exists()), (0, false));
}
