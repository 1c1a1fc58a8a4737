//! Private servers of another user: their files, the paths that they can reach, and root's handling of their folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use mydyno_host::setting::AllowHostChange;
use mydyno_host::sync_delay;
use mydyno_host::task::{self, Attribute};
use mydyno_host::user::User;
use mydyno_model::crash::CrashBy;
use mydyno_model::server::ServerInfo;
use mydyno_sandbox::crash::{Crash, crash};
use mydyno_sandbox::data::{self, Keeping};
use mydyno_sandbox::{Spec, connect_options, down, up, variable};
use mydyno_wire::Client;

use crate::scratch::{Scratch, entries, keeping, lever_set};

/// A user that every system has.
const NOBODY: &str = "nobody";

/// Whether servers can run as another user here; prints the reason if not.
pub fn nobody(scratch: &Scratch) -> Option<User> {
    let found = User::find(NOBODY).and_then(|user| user.check(scratch.host.machine()).map(|()| user));
    found.map_err(|lack| println!("not tested: {lack}")).ok()
}

fn spec(name: &str, more: &[(&str, &str)]) -> Spec {
    let user = [("server.user", NOBODY)];
    let wanted: Vec<_> =
        user.iter().chain(more).map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect();
    Spec { name: name.to_owned(), lever_set: lever_set(&wanted), ..Spec::default() }
}

fn connect(info: &ServerInfo) -> Client {
    Client::connect(&connect_options(info).unwrap()).unwrap()
}

/// Everything in a folder that does not belong to `uid`.
fn not_of(uid: u32, folder: &Path) -> Vec<PathBuf> {
    let mut others = Vec::new();
    for path in entries(folder).into_iter().chain([folder.to_owned()]) {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.uid() != uid {
            others.push(path);
        } else if meta.is_dir() && path != folder {
            others.extend(not_of(uid, &path));
        }
    }
    others
}

#[test]
fn a_server_runs_as_another_user_who_owns_its_data_and_reaches_nothing_else_of_roots() {
    let scratch = Scratch::new();
    let Some(user) = nobody(&scratch) else { return };
    let site = scratch.site();
    let secret = scratch.path().join("secret");
    fs::write(&secret, "1\n").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    // Below this process's own value needs a capability that starting as another user does not.
    let below = task::check(scratch.host.machine(), Attribute::Nice, "-2").is_ok();
    let nice = if below { "-2" } else { "2" };
    let mut wanted = vec![("limit.memlock", "60K"), ("server.nice", nice)];
    // Its library is preloaded, and counts in a file of the folder.
    wanted.extend(sync_delay::check().is_ok().then_some(("server.sync_delay", "100us")));
    let info = up(&site, &spec("u", &wanted), &mut |_| {}).unwrap();
    let pid = info.pid.unwrap();
    let proc = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let status = proc("status");
    let uid = user.uid();
    assert!(status.contains(&format!("\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")), "{status}");
    assert!(status.contains("\nCapEff:\t0000000000000000\n"), "{status}");
    assert!(proc("limits").contains(&(60 << 10).to_string()), "{}", proc("limits"));
    assert_eq!(proc("stat").rsplit_once(')').unwrap().1.split_whitespace().nth(16), Some(nice));
    let folder = scratch.host.state.servers().join("u");
    assert_eq!(info.datadir, folder.join("data").display().to_string());
    assert_eq!(variable::read(&info, "datadir").unwrap().trim_end_matches('/'), info.datadir);
    let mut client = connect(&info);
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT) ENGINE=InnoDB",
        "INSERT INTO d.t VALUES (1), (2), (3)",
    ] {
        client.query(sql).unwrap();
    }
    assert_eq!(client.query("SELECT COUNT(*) FROM d.t").unwrap().scalar().unwrap(), "3");
    // The server cannot read files that only root may read, nor anything else in the state folder.
    for file in [secret.as_path(), &folder.join("password"), scratch.host.state.journal().path()] {
        let sql = format!("LOAD DATA INFILE '{}' INTO TABLE d.t", file.display());
        let error = client.query(&sql).unwrap_err().to_string();
        assert!(error.contains("rrcode: 13") || error.contains("rrcode: 2 "), "{error}");
    }
    let seen = entries(format!("/proc/{pid}/root{}", scratch.host.state.path().display()));
    assert_eq!(seen.len(), 1, "{seen:?}");
    for its in ["data", "tmp"] {
        assert_eq!(not_of(uid, &folder.join(its)), [""; 0].map(PathBuf::from));
    }
    for (name, mode) in [("", 0o711), ("run", 0o1777), ("password", 0o600), (".mydyno-mark", 0o600)] {
        let meta = fs::metadata(folder.join(name)).unwrap();
        assert_eq!((meta.uid(), meta.mode() & 0o7777), (0, mode), "{name}");
    }
    assert_eq!(fs::metadata(scratch.host.state.path()).unwrap().mode() & 0o777, 0o700);
    drop(client);
    down(&site, "u").unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn data_that_another_user_has_written_are_kept_and_start_servers_of_either_user() {
    let scratch = Scratch::new();
    if nobody(&scratch).is_none() {
        return;
    }
    let site = scratch.site();
    for how in [Keeping { room: None, plain: true, lent: false }, keeping(scratch.host.machine(), 100 << 20)]
    {
        let small = [("option.innodb_log_file_size", "8M")];
        let first = up(&site, &spec("first", &small), &mut |_| {}).unwrap();
        connect(&first).query("CREATE DATABASE d").unwrap();
        data::stop(&site, &first).unwrap();
        let kept = data::keep(&site, &first, "its", how, &mut |_| {}).unwrap();
        down(&site, "first").unwrap();
        let roots = lever_set(&small.map(|(id, value)| (id.to_owned(), value.to_owned())));
        // Both at once, so that they share a disk if the data have one.
        let servers = [("users", spec("", &small).lever_set), ("roots", roots)].map(|(name, lever_set)| {
            let data = Some(data::find(&site, "its").unwrap());
            up(&site, &Spec { name: name.to_owned(), lever_set, data, ..Spec::default() }, &mut |_| {})
                .unwrap()
        });
        for server in servers.iter().rev() {
            connect(server).query("USE d").unwrap();
            down(&site, &server.name).unwrap();
        }
        kept.verify(&site).unwrap();
        data::remove(&site, "its").unwrap();
    }
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn a_disk_that_another_users_server_does_not_see_is_not_in_use_by_it() {
    let scratch = Scratch::new();
    let levers = mydyno_levers::list(scratch.host.machine());
    let lacks =
        |id: &str| levers.iter().find(|lever| lever.id == id).is_none_or(|lever| lever.lacks.is_some());
    if nobody(&scratch).is_none() || lacks("disk.file_system") {
        return;
    }
    let site = scratch.site();
    let medium = if lacks("disk.medium") { "file" } else { "emulated" };
    let disk = [("disk.file_system", "ext4"), ("disk.size", "256M"), ("disk.medium", medium)];
    let allow_host_change = Some(AllowHostChange::by_the_user());
    up(&site, &Spec { allow_host_change, ..spec("disk", &disk) }, &mut |_| {}).unwrap();
    let info = up(&site, &spec("later", &[]), &mut |_| {}).unwrap();
    let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", info.pid.unwrap())).unwrap();
    assert!(!mounts.contains("/servers/disk"), "{mounts}");
    // Its file system, its loop device and its drive are removed while the other server stays.
    down(&site, "disk").unwrap();
    assert_eq!(connect(&info).query("SELECT 1").unwrap().scalar().unwrap(), "1");
    down(&site, "later").unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn another_users_server_comes_back_from_a_kill() {
    let scratch = Scratch::new();
    if nobody(&scratch).is_none() {
        return;
    }
    let server = spec("c", &[("option.innodb_flush_log_at_trx_commit", "2")]);
    let wanted = Crash { server, levers: vec![], by: CrashBy::Kill, commits: 50, connections: 2 };
    let report = crash(&scratch.site(), &wanted, &mut |_| {}).unwrap();
    assert!(report.is_sound() && report.lost == Some(0), "{report:?}");
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn a_link_that_the_user_puts_in_the_place_of_its_socket_is_not_followed() {
    let scratch = Scratch::new();
    if nobody(&scratch).is_none() {
        return;
    }
    let site = scratch.site();
    let other = up(&site, &spec("other", &[]), &mut |_| {}).unwrap();
    let info = up(&site, &spec("link", &[]), &mut |_| {}).unwrap();
    fs::remove_file(&info.socket).unwrap();
    symlink(&other.socket, &info.socket).unwrap();
    let error = connect_options(&info).unwrap_err().to_string();
    assert!(error.contains(&info.socket) && error.contains("it is a link"), "{error}");
    // Nor when the folder is removed.
    symlink(scratch.path(), Path::new(&info.datadir).join("out")).unwrap();
    down(&site, "link").unwrap();
    assert!(Path::new(&other.socket).exists());
    down(&site, "other").unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn the_user_that_runs_mydyno_is_no_other_and_one_that_there_is_not_is_named_before_anything_is_made() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let of = |user: &str| Spec {
        name: "u".to_owned(),
        lever_set: lever_set(&[("server.user".to_owned(), user.to_owned())]),
        ..Spec::default()
    };
    let own = mydyno_host::effective_uid().to_string();
    let info = up(&site, &of(&own), &mut |_| {}).unwrap();
    assert!(info.socket.ends_with("/u/s.sock"), "{}", info.socket);
    down(&site, "u").unwrap();
    let error = up(&site, &of("no-such-user"), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("server.user") && error.contains("no-such-user"), "{error}");
    assert_eq!(scratch.traces(), [""; 0]);
}
