//! The options that every test of sysbench 1.0.20 has, in the order of its help, with their defaults. The help texts are
//! our own.

use super::value::{Definition, Kind};

/// Name, kind, default, help.
type Row = (&'static str, Kind, Option<&'static str>, &'static str);

/// Options that help shows below one title.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    rows: &'static [Row],
}

impl Group {
    pub(crate) fn definitions(self) -> Vec<Definition> {
        self.rows
            .iter()
            .map(|(name, kind, default, help)| Definition::new(name, *kind, *default, help))
            .collect()
    }
}

use Kind::{Bool, Double, File, Int, List, Size, Text};

pub(crate) const GENERAL: Group = Group {
    rows: &[
        ("threads", Int, Some("1"), "worker threads"),
        ("events", Int, Some("0"), "end the test after this many events; 0 sets no limit"),
        ("time", Int, Some("10"), "end the test after this many seconds; 0 sets no limit"),
        (
            "forced-shutdown",
            Text,
            Some("off"),
            "end the program this long after --time when threads still work: seconds, a percentage of --time, or off",
        ),
        ("thread-stack-size", Size, Some("64K"), "accepted; stacks are sized by the system"),
        ("rate", Int, Some("0"), "events that arrive per second on average; 0 sends without pause"),
        ("report-interval", Int, Some("0"), "print figures every this many seconds; 0 prints none"),
        (
            "report-checkpoints",
            List,
            Some(""),
            "print a full report and restart all counters at these seconds after the start",
        ),
        ("debug", Bool, Some("off"), "print diagnostics"),
        ("validate", Bool, Some("off"), "check results where a test can"),
        ("help", Bool, Some("off"), "print this help"),
        ("version", Bool, Some("off"), "print the version"),
        ("config-file", File, None, "read options from this file"),
        ("tx-rate", Int, Some("0"), "old name of --rate"),
        ("max-requests", Int, Some("0"), "old name of --events"),
        ("max-time", Int, Some("0"), "old name of --time"),
        ("num-threads", Int, Some("1"), "old name of --threads"),
    ],
};

pub(crate) const RANDOM: Group = Group {
    rows: &[
        (
            "rand-type",
            Text,
            Some("special"),
            "distribution of random numbers: uniform, gaussian, special or pareto",
        ),
        ("rand-spec-iter", Int, Some("12"), "numbers that are added up for gaussian and special"),
        ("rand-spec-pct", Int, Some("1"), "percentage of the range that special draws most often"),
        ("rand-spec-res", Int, Some("75"), "percentage of draws that special takes from there"),
        ("rand-seed", Int, Some("0"), "seed of all random numbers; 0 takes one from the clock"),
        ("rand-pareto-h", Double, Some("0.2"), "parameter h of pareto"),
    ],
};

pub(crate) const LOG: Group = Group {
    rows: &[
        ("verbosity", Int, Some("3"), "how much is printed, from 0 (fatal errors) to 5 (diagnostics)"),
        ("percentile", Int, Some("95"), "percentile of latency in reports, 1 to 100; 0 leaves it out"),
        ("histogram", Bool, Some("off"), "print a histogram of latency at the end"),
    ],
};

pub(crate) const DATABASE: Group = Group {
    rows: &[
        ("db-driver", Text, Some("mysql"), "database driver; there is one, mysql"),
        ("db-ps-mode", Text, Some("auto"), "auto uses prepared statements, disable sends texts"),
        ("db-debug", Bool, Some("off"), "print diagnostics of the database driver"),
    ],
};

pub(crate) const MYSQL: Group = Group {
    rows: &[
        ("mysql-host", List, Some("localhost"), "hosts of servers; connections are spread over them"),
        ("mysql-port", List, Some("3306"), "ports of servers"),
        ("mysql-socket", List, None, "sockets of servers"),
        ("mysql-user", Text, Some("sbtest"), "user"),
        ("mysql-password", Text, Some(""), "password"),
        ("mysql-db", Text, Some("sbtest"), "database"),
        ("mysql-ssl", Bool, Some("off"), "encrypt connections with TLS"),
        ("mysql-ssl-cipher", Text, Some(""), "accepted; TLS agrees on its cipher"),
        ("mysql-compression", Bool, Some("off"), "compress what is sent and received"),
        ("mysql-debug", Bool, Some("off"), "accepted; see --log of mydyno"),
        (
            "mysql-ignore-errors",
            List,
            Some("1213,1020,1205"),
            "numbers of errors after which an event starts again, or all",
        ),
        ("mysql-dry-run", Bool, Some("off"), "send nothing and act as if every statement had succeeded"),
    ],
};

pub(crate) const PGSQL: Group = Group {
    rows: &[
        ("pgsql-host", Text, Some("localhost"), "accepted and not used"),
        ("pgsql-port", Double, Some("5432"), "accepted and not used"),
        ("pgsql-user", Text, Some("sbtest"), "accepted and not used"),
        ("pgsql-password", Text, Some(""), "accepted and not used"),
        ("pgsql-db", Text, Some("sbtest"), "accepted and not used"),
    ],
};

/// Options of sysbench's development branch that drivers pass already, and our own: not in the help of 1.0.20.
pub(crate) fn additions() -> Vec<Definition> {
    let rows: &[Row] = &[
        ("luajit-cmd", Text, None, "accepted, without effect"),
        (
            "record",
            Text,
            Some(""),
            "write a record of mydyno into this folder, which must be empty or not exist",
        ),
        ("errors-by-code", Bool, Some("off"), "print the ignored errors by number at the end"),
        ("mysql-ssl-ca", Text, Some(""), "certificates of authorities, in PEM"),
        ("mysql-ssl-cert", Text, Some(""), "this client's certificate, in PEM"),
        ("mysql-ssl-key", Text, Some(""), "this client's key, in PEM"),
        (
            "allow-unverified-password",
            Bool,
            Some("off"),
            "send the password to an unverified server in a readable form, where the account needs that",
        ),
        ("warmup-time", Int, Some("0"), "accepted, without effect"),
        (
            "thread-init-timeout",
            Int,
            Some("30"),
            "end the program when the threads are not ready after this many seconds; 0 sets no limit",
        ),
        (
            "mydyno-engine",
            Text,
            Some("auto"),
            "auto sends the events of bundled oltp_* scripts without Lua where it can, native wants that, lua never does it, threads runs \
             each connection in a thread of its own",
        ),
        ("help-mydyno", Bool, Some("off"), "print the options that sysbench 1.0.20 has not"),
    ];
    Group { rows }.definitions()
}
