//! Kinds of lines in the error log, by the texts that servers write.

/// A kind of message, and texts of which a line of this kind holds one.
pub(super) struct Kind {
    /// Its name, as facts have it.
    pub name: &'static str,
    /// Texts of which a line of this kind holds one.
    pub texts: &'static [&'static str],
    /// Whether only lines of level error count.
    pub errors_only: bool,
}

/// A connection for which there is no thread, as by a limit of processes, ends with a text of memory too (MariaDB).
pub(super) const NO_THREAD: &str = "Aborted connection";

/// All kinds.
pub(super) const KINDS: [Kind; 28] = [
    Kind { name: "crash", texts: &["got signal ", "got exception 0x"], errors_only: false },
    Kind { name: "recovery", texts: &["Starting crash recovery"], errors_only: false },
    Kind {
        name: "corruption",
        texts: &["page corruption", "corrupted page", "is corrupt", "checksum mismatch", "corruption in"],
        errors_only: true,
    },
    Kind { name: "crashed_table", texts: &["is marked as crashed"], errors_only: false },
    Kind { name: "failed_start", texts: &["] Aborting", "[Server] Aborting"], errors_only: false },
    Kind {
        name: "disk_full",
        texts: &[
            "No space left on device",
            "Disk is full",
            "Errcode: 28",
            "is full'",
            "' is full",
            "ran out of space",
        ],
        errors_only: false,
    },
    Kind { name: "open_files", texts: &["Too many open files", "Errcode: 24"], errors_only: false },
    Kind {
        name: "memory",
        texts: &["Out of memory", "Cannot allocate memory", "Errcode: 12 ", "Out of sort memory"],
        errors_only: false,
    },
    Kind {
        name: "stall",
        texts: &[
            "A long semaphore wait",
            "Long wait for",
            "Semaphore wait has lasted",
            "intended loop took",
            "Redo log writer is waiting",
        ],
        errors_only: false,
    },
    Kind {
        name: "io_error",
        texts: &[
            "Operating system error number 5 ",
            "Input/output error",
            "Errcode: 5 ",
            "Read-only file system",
            "Binary logging not possible",
        ],
        errors_only: false,
    },
    Kind {
        name: "upgrade",
        texts: &[
            "run mysql_upgrade",
            "run mariadb-upgrade",
            "Incorrect definition of table mysql.",
            "Column count of mysql.",
            "Missing system table mysql.",
        ],
        errors_only: false,
    },
    Kind {
        name: "missing_file",
        texts: &[
            "doesn't exist in engine",
            "Could not find a valid tablespace",
            "Cannot open datafile for read-only",
            "is missing or is not accessible",
        ],
        errors_only: false,
    },
    Kind {
        name: "replication",
        texts: &[
            "Slave SQL",
            "Replica SQL",
            "Slave I/O",
            "Replica I/O",
            "Slave: ",
            "Replica: ",
            "Plugin group_replication reported",
        ],
        errors_only: true,
    },
    Kind {
        name: "plugin",
        texts: &["Couldn't load plugin", "Can't open shared library"],
        errors_only: false,
    },
    Kind { name: "unsafe", texts: &["Unsafe statement written"], errors_only: false },
    Kind {
        name: "file_limit",
        texts: &["Could not increase number of max_open_files", "Changed limits: "],
        errors_only: false,
    },
    Kind { name: "host_name", texts: &["could not be resolved", "Hostname '"], errors_only: false },
    Kind { name: "event", texts: &["Event Scheduler: ["], errors_only: true },
    Kind { name: "logging_off", texts: &["Turning logging off for the"], errors_only: false },
    Kind { name: "init_connect", texts: &["init_connect command failed"], errors_only: false },
    Kind { name: "thread_stack", texts: &["Thread stack overrun"], errors_only: false },
    Kind {
        name: "row_size",
        texts: &["which is greater than maximum allowed size", "Row size too large"],
        errors_only: false,
    },
    Kind {
        name: "thread_pool",
        texts: &["Threadpool could not create additional thread"],
        errors_only: false,
    },
    Kind { name: "messages", texts: &["Error message file '"], errors_only: false },
    Kind {
        name: "tls",
        texts: &[
            "SSL error: ",
            "Unable to get private key",
            "Unable to get certificate",
            "Failed to set up SSL because",
            "SSL_CTX_set_default_verify_paths failed",
        ],
        errors_only: false,
    },
    Kind {
        name: "certificate_subject",
        texts: &["subject mismatch: should be", "issuer mismatch: should be"],
        errors_only: false,
    },
    Kind {
        name: "same_uuid",
        texts: &["with the same server_uuid", "with the same UUID", "with the same server_id"],
        errors_only: false,
    },
    Kind { name: "long_undo", texts: &["Difficult to find free blocks"], errors_only: false },
];

/// Kinds of which a server speaks at its start, each time anew: those before its last end were mended, or come again.
pub(super) const OF_START: [&str; 5] = ["plugin", "upgrade", "file_limit", "messages", "tls"];

/// The kind that single lines tell little of.
pub(super) const BY_HOUR: &str = "same_uuid";
