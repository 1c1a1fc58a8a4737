//! The list of all levers: what each is, what it takes, and what this machine lacks to turn it.

use mydyno_host::allocator::{ALLOCATORS, Allocator};
use mydyno_host::cgroup::{RESOURCES, Resource};
use mydyno_host::emulated::{self, Spec as Drive};
use mydyno_host::file_system::{FILE_SYSTEMS, FileSystem};
use mydyno_host::limit::LIMITS;
use mydyno_host::task::Attribute;
use mydyno_host::user::{self, User};
use mydyno_host::{Machine, effective_uid, loops, setting, swap, sync_delay, zram};
use mydyno_model::lever::{LeverInfo, LeverScope, LeverValue};

use super::Turns;
use super::bundle::BUNDLES;
use super::read::{CACHES, CPU, IO, STATEMENT, USER, WRITE_THROUGH};
use crate::arrangement::VARIABLES;
use crate::find::find;

const SYNC_DELAY: &str = "by how much longer the server waits for each fsync, fdatasync and msync (LD_PRELOAD); not for writes with O_DSYNC, \
                          nor for syncs through io_uring";

/// All levers on a machine, with whether each can be turned here. Nothing is changed.
pub fn list(machine: &Machine) -> Vec<LeverInfo> {
    let mut levers: Vec<LeverInfo> =
        setting::names(machine).iter().map(|name| of_host(machine, name)).collect();
    levers.push(LeverInfo {
        takes: "a size like 512M".to_owned(),
        lacks: lack(swap::check(machine)),
        ..blank("swap.file", "a swap file of this size", LeverScope::Host)
    });
    levers.push(LeverInfo {
        takes: "a size like 512M".to_owned(),
        lacks: lack(zram::check(machine, 0)),
        ..blank("swap.zram", "swap in compressed memory of this size", LeverScope::Host)
    });
    levers.extend(RESOURCES.map(|resource| of_group(machine, resource)));
    levers.extend(of_disk(machine));
    levers.extend(of_program());
    levers.extend(of_server());
    levers.push(of_user(machine));
    levers.extend(of_load());
    levers
}

fn blank(id: &str, what: &str, scope: LeverScope) -> LeverInfo {
    LeverInfo {
        id: id.to_owned(),
        what: what.to_owned(),
        scope,
        takes: String::new(),
        values: vec![],
        now: None,
        lacks: None,
        ledger: None,
    }
}

fn lack<T, E: std::fmt::Display>(checked: Result<T, E>) -> Option<String> {
    checked.err().map(|error| error.to_string())
}

fn of_host(machine: &Machine, name: &str) -> LeverInfo {
    LeverInfo {
        takes: setting::form(machine, name).unwrap_or_default(),
        now: setting::read(machine, name).ok(),
        lacks: lack(setting::check(machine, name)),
        ledger: name.ends_with(".write_cache").then(|| WRITE_THROUGH.to_owned()),
        ..blank(name, "a setting of the kernel", LeverScope::Host)
    }
}

fn of_group(machine: &Machine, resource: Resource) -> LeverInfo {
    let (what, takes) = match resource {
        Resource::Memory => ("memory of the server's control group", "a size like 512M"),
        Resource::Swap => ("swap of the server's control group, beside its memory", "a size like 512M"),
        Resource::Cpu => ("CPU time of the server's control group", CPU),
        Resource::Cpuset => ("CPUs of the server's control group", "a list of CPUs like 0-1,3"),
        Resource::Io => ("I/O of the server's control group on the disk of its data", IO),
    };
    LeverInfo {
        takes: takes.to_owned(),
        lacks: lack(resource.check(machine)),
        ..blank(&format!("cgroup.{}", resource.name()), what, LeverScope::ServerStart)
    }
}

fn of_disk(machine: &Machine) -> Vec<LeverInfo> {
    let lacks = lack(loops::check(machine));
    let queues = lack(setting::check_queues(machine));
    let value = |file_system: FileSystem| LeverValue {
        value: file_system.name().to_owned(),
        lacks: lack(file_system.check(machine)),
        ledger: file_system.ledger().map(str::to_owned),
    };
    let lever = |id: &str, what: &str, takes: &str| LeverInfo {
        takes: takes.to_owned(),
        lacks: lacks.clone(),
        ..blank(id, what, LeverScope::ServerStart)
    };
    let mut levers = vec![
        LeverInfo {
            values: FILE_SYSTEMS.map(value).into(),
            ..lever(
                "disk.file_system",
                "a disk of its own for the server's data: a file as a loop device",
                "a file system",
            )
        },
        LeverInfo {
            lacks: lacks.clone().or_else(|| lack(emulated::check(machine))).or_else(|| queues.clone()),
            ..lever(
                "disk.medium",
                "what that disk is made of; an emulated one concerns the whole host",
                "file or emulated",
            )
        },
        LeverInfo {
            values: CACHES
                .map(|(name, cache)| LeverValue {
                    value: name.to_owned(),
                    lacks: None,
                    ledger: Drive { cache, depth: 1 }.ledger().map(str::to_owned),
                })
                .into(),
            ..lever("disk.cache", "the volatile cache of an emulated disk", "off, on or ignores-flushes")
        },
        lever(
            "disk.depth",
            "of so many requests an emulated disk takes the nearest first",
            "a whole number from 1 to 32",
        ),
        lever(
            "disk.mount_options",
            "mount options of that disk",
            "options with commas, as in noatime,barrier=0",
        ),
        lever("disk.size", "size of that disk", "a size like 4G; 2 GiB unless given"),
    ];
    levers.extend(setting::queue_files().iter().map(|file| {
        let takes = match file.as_str() {
            "scheduler" => "a scheduler, as in none or mq-deadline".to_owned(),
            // Any loop device stands for the one that will be ours.
            _ => setting::form(machine, &format!("queue.loop0.{file}")).unwrap_or_default(),
        };
        LeverInfo {
            lacks: lacks.clone().or_else(|| queues.clone()),
            ledger: (file == "write_cache").then(|| WRITE_THROUGH.to_owned()),
            ..lever(&format!("disk.queue.{file}"), of_queue(file), &takes)
        }
    }));
    levers
}

fn of_queue(file: &str) -> &'static str {
    match file {
        "scheduler" => "the scheduler of that disk's queue",
        "nr_requests" => "requests that its queue holds",
        "read_ahead_kb" => "its read-ahead",
        "rotational" => "whether it is said to rotate",
        "max_sectors_kb" => "the largest request that it is sent",
        "write_cache" => "whether flushes reach it",
        "wbt_lat_usec" => "the latency of reads above which writing back is throttled; 0: never",
        "nomerges" => "whether neighbouring requests are merged",
        "rq_affinity" => "the CPU on which requests complete",
        _ => "a tunable of its scheduler",
    }
}

/// Which server, and with which file.
fn of_program() -> Vec<LeverInfo> {
    let found = find(None, None);
    let lever = |id: &str, what: &str, takes: &str| LeverInfo {
        takes: takes.to_owned(),
        ..blank(id, what, LeverScope::ServerStart)
    };
    vec![
        LeverInfo {
            now: found.as_ref().ok().map(|i| format!("{} from {}", i.engine, i.program.display())),
            lacks: lack(found),
            ..lever(
                "server.engine",
                "which server of those that are found here",
                "a family, with a series if it matters, as in mariadb-10.11",
            )
        },
        lever(
            "server.basedir",
            "where the server is unpacked instead",
            "the folder with its bin or sbin, as in /opt/mysql-8.0",
        ),
        lever(
            "server.option_file",
            "an option file that it starts with, as the server itself reads it; what makes it private is left out and named",
            "a path, as in /etc/mysql/my.cnf",
        ),
    ]
}

/// What is turned by a load.
fn of_load() -> Vec<LeverInfo> {
    let lever = |id: &str, what: &str, takes: &str| LeverInfo {
        takes: takes.to_owned(),
        ..blank(id, what, LeverScope::Load)
    };
    let ledger = || Some("durability: MyISAM, Aria and MEMORY have no transactions".to_owned());
    vec![
        LeverInfo {
            ledger: ledger(),
            ..lever(
                "schema.statement",
                "a statement that changes the tables of the workload once they are made, before the load",
                STATEMENT,
            )
        },
        LeverInfo {
            ledger: ledger(),
            ..lever(
                "workload.OPTION",
                "an option of the workload, as in workload.table-size; `mydyno workloads NAME` lists them",
                "its value",
            )
        },
    ]
}

fn of_user(machine: &Machine) -> LeverInfo {
    LeverInfo {
        takes: USER.to_owned(),
        now: User::find(&effective_uid().to_string()).ok().map(|user| user.name().to_owned()),
        lacks: lack(user::check(machine)),
        ..blank("server.user", "the user that the server runs as", LeverScope::ServerStart)
    }
}

fn of_server() -> Vec<LeverInfo> {
    let at_start = |id: &str, what: &str, takes: &str| LeverInfo {
        takes: takes.to_owned(),
        ..blank(id, what, LeverScope::ServerStart)
    };
    let value = |allocator: Allocator| LeverValue {
        value: allocator.name().to_owned(),
        lacks: lack(allocator.library()),
        ledger: None,
    };
    let mut levers = vec![LeverInfo {
        values: ALLOCATORS.map(value).into(),
        ..at_start("server.allocator", "the server's memory allocator (LD_PRELOAD)", "an allocator")
    }];
    levers.extend([Attribute::Affinity, Attribute::Nice, Attribute::Class].map(|attribute| {
        let what = match attribute {
            Attribute::Affinity => "CPUs that the server may run on",
            Attribute::Nice => "the server's nice value",
            Attribute::Class => "the server's scheduling class",
        };
        at_start(&format!("server.{}", attribute.name()), what, attribute.form())
    }));
    levers.extend(LIMITS.map(|limit| LeverInfo {
        now: limit.now(),
        ..at_start(&format!("limit.{}", limit.name()), limit.what(), limit.form())
    }));
    levers.push(LeverInfo {
        lacks: lack(sync_delay::check()),
        ..at_start(sync_delay::NAME, SYNC_DELAY, sync_delay::FORM)
    });
    levers.extend(
        VARIABLES.iter().map(|name| at_start(&format!("env.{name}"), "the server's environment", "one line")),
    );
    levers.push(at_start("option.VARIABLE", "a variable that the server is started with", "its value"));
    levers.push(LeverInfo {
        takes: "its value".to_owned(),
        ..blank(
            "variable.VARIABLE",
            "a global variable, set while the server runs",
            LeverScope::ServerRunning,
        )
    });
    levers.extend(BUNDLES.iter().map(|bundle| {
        let parts: Vec<String> = bundle.parts.iter().map(|(id, value)| format!("{id}={value}")).collect();
        let prices = Turns::prices(bundle.parts.iter().map(|(id, _)| id.trim_start_matches("option.")));
        LeverInfo {
            ledger: Some(prices.join("; ")).filter(|price| !price.is_empty()),
            ..at_start(bundle.id, &format!("{}: {}", bundle.what, parts.join(" ")), "on")
        }
    }));
    levers
}

/// The lever whose name looks most like what was given, if one does.
pub(super) fn nearest(id: &str) -> Option<String> {
    let server = of_server().into_iter().chain(of_load()).map(|lever| lever.id);
    let queue = setting::queue_files().into_iter().map(|file| format!("disk.queue.{file}"));
    let groups = RESOURCES.map(|resource| format!("cgroup.{}", resource.name()));
    let disk = [
        "disk.file_system",
        "disk.medium",
        "disk.cache",
        "disk.depth",
        "disk.mount_options",
        "disk.size",
        "server.engine",
        "server.basedir",
        "server.option_file",
        "server.user",
        "swap.file",
        "swap.zram",
    ]
    .map(str::to_owned);
    let settings = Machine::real().map(|machine| setting::names(&machine)).unwrap_or_default();
    let distance = |name: &str| strsim::damerau_levenshtein(name, id);
    server
        .chain(groups)
        .chain(queue)
        .chain(disk)
        .chain(settings)
        .min_by_key(|name| distance(name))
        .filter(|name| distance(name) <= 3)
}
