//! Whole command lines.

use crate::streams::testing::capture;

fn run(line: &str) -> (u8, String, String) {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (streams, output, errors) = capture("");
    let status = super::run(&args, streams);
    (status, output.text(), errors.text())
}

#[test]
fn a_report_has_the_form_of_sysbench() {
    let (status, output, errors) = run("cpu --cpu-max-prime=100 --events=10 --threads=2 run");
    assert_eq!((status, errors.as_str()), (0, ""));
    for part in [
        "Running the test with following options:\nNumber of threads: 2\nInitializing random number generator from current \
         time\n\n\nPrime numbers limit: 100\n\nInitializing worker threads...\n\nThreads started!\n\nCPU speed:\n",
        "total number of events:              10\n",
        "\nThreads fairness:\n    events (avg/stddev):           5.0000/",
    ] {
        assert!(output.contains(part), "{output}");
    }
}

#[test]
fn mistakes_have_their_stream_and_status() {
    for (line, output, errors) in [
        ("cpu", "", "The 'cpu' test requires a command argument. See 'sysbench cpu help'\n"),
        ("cpu foo", "", "Unknown command: foo\n"),
        ("cpu prepare", "", "'cpu' test does not implement the 'prepare' command.\n"),
        ("cpu --foo=3 run", "", "invalid option: --foo=3\n"),
        ("cpu run x", "", "Unrecognized command line argument: x\n"),
        ("cpu --verbosity=9 run", "Invalid value for verbosity: 9\n", ""),
        ("cpu --cpu-max-prime=0 run", "FATAL: Invalid value of cpu-max-prime: 0.\n", ""),
        ("cpu --threads=0 run", "FATAL: Invalid value for --threads: 0.\n\n", ""),
        ("threads --thread-locks=0 run", "FATAL: Invalid value for --thread-locks: 0.\n", ""),
        ("mutex --mutex-num=0 run", "FATAL: Invalid value for --mutex-num: 0.\n", ""),
    ] {
        let (status, out, err) = run(line);
        assert_eq!((status, err.as_str()), (1, errors), "{line}");
        assert!(out.ends_with(output), "{line}: {out}");
    }
}

#[test]
fn every_thread_of_mutex_has_one_event_and_memory_ends_with_its_total() {
    let (_, output, _) = run("mutex --mutex-loops=1 --mutex-locks=10 --threads=3 --events=10 run");
    assert!(output.contains("total number of events:              3\n"), "{output}");
    let (_, output, _) = run("memory --memory-total-size=1M --threads=2 run");
    assert!(output.contains("Total operations: 1024 ("), "{output}");
    assert!(output.contains("1.00 MiB transferred ("), "{output}");
}

#[test]
fn a_rate_is_kept_and_reports_come_in_their_interval() {
    let (status, output, _) = run("cpu --cpu-max-prime=3 --rate=100 --time=2 --report-interval=1 run");
    assert_eq!(status, 0);
    assert!(output.contains("\n[ 1s ] thds: 1 eps: "), "{output}");
    assert!(output.contains("\n[ 1s ] queue length: "), "{output}");
    let events: f64 = output
        .split("total number of events:")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    // Poisson of mean 200: six deviations to both sides.
    assert!((115.0..285.0).contains(&events), "{events}");
}

#[test]
fn passwords_are_found_in_both_spellings() {
    assert_eq!(super::password_at(b"--mysql-password=x"), Some(17));
    assert_eq!(super::password_at(b"--mysql_password=x"), Some(17));
    assert_eq!(super::password_at(b"--mysql-user=x"), None);
}
