//! The text of `--help`.

use super::options::{DATABASE, GENERAL, LOG, MYSQL, PGSQL, RANDOM, additions, print_options};
use super::tests::ALL;

/// The options that sysbench 1.0.20 has not.
pub(crate) fn own_text() -> String {
    format!("Options that sysbench 1.0.20 has not:\n{}\n", print_options(&additions()))
}

/// The options of every test in the order of sysbench 1.0.20, and the tests.
pub(crate) fn text() -> String {
    let mut text = String::from(
        "Usage:\n  sysbench [options]... [testname] [command]\n\nCommands of most tests: prepare run cleanup help\n",
    );
    for (title, group) in [
        ("General options:\n", GENERAL),
        ("Pseudo-Random Numbers Generator options:\n", RANDOM),
        ("Log options:\n", LOG),
        ("General database options:\n\n", DATABASE),
    ] {
        text.push_str(&format!("\n{title}{}", print_options(&group.definitions())));
    }
    text.push_str("\n\nDatabase drivers:\n  mysql - MySQL and MariaDB, mydyno's own client\n");
    text.push_str(&format!("\nmysql options:\n{}", print_options(&MYSQL.definitions())));
    text.push_str(&format!("\npgsql options:\n{}", print_options(&PGSQL.definitions())));
    text.push_str("\nBuilt-in tests:\n");
    for test in ALL {
        text.push_str(&format!("  {} - {}\n", test.name, test.summary));
    }
    text.push_str("\n'sysbench <testname> help' lists the options of a test.\n\n");
    text
}
