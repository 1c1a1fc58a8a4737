//! Bundles: several levers under one name.

pub(crate) struct Bundle {
    /// Id, as in `bundle.durable`.
    pub(crate) id: &'static str,
    /// Meaning, for people.
    pub(crate) what: &'static str,
    /// Ids and values of its levers.
    pub(crate) parts: &'static [(&'static str, &'static str)],
}

/// All bundles.
pub(crate) const BUNDLES: [Bundle; 4] = [
    Bundle {
        id: "bundle.durable",
        what: "every commit synced, redo and binary log",
        parts: &[
            ("option.log_bin", "1"),
            // MySQL 5.7 starts no binary log without it.
            ("option.server_id", "1"),
            ("option.sync_binlog", "1"),
            ("option.innodb_flush_log_at_trx_commit", "1"),
            ("option.innodb_doublewrite", "1"),
        ],
    },
    Bundle {
        id: "bundle.relaxed",
        what: "commits synced once a second",
        parts: &[("option.sync_binlog", "0"), ("option.innodb_flush_log_at_trx_commit", "2")],
    },
    Bundle {
        id: "bundle.rotating-disk",
        what: "data on a rotating disk without a cache, emulated, behind a scheduler",
        parts: &[
            ("disk.file_system", "ext4"),
            ("disk.medium", "emulated"),
            ("disk.cache", "off"),
            ("disk.depth", "1"),
            ("disk.queue.scheduler", "mq-deadline"),
        ],
    },
    Bundle {
        id: "bundle.small-machine",
        what: "a server that has 1 GiB of memory, 1 CPU and 256 open files",
        parts: &[("cgroup.memory", "1G"), ("cgroup.cpu", "1"), ("limit.nofile", "256")],
    },
];
