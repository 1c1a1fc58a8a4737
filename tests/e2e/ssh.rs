//! The audit of another host over a real sshd on loopback: `make test-ssh`.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::fixture::until;
use crate::home::Home;

/// A private sshd with keys of its own; it ends when it is dropped.
struct Sshd {
    child: Child,
    folder: PathBuf,
    /// The folder that sshd wants for its unprivileged half, where it was not there.
    made: bool,
}

const PRIVSEP: &str = "/run/sshd";

fn key(path: &Path) {
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status().unwrap();
    assert!(made.success());
}

impl Sshd {
    /// Starts one; sessions have the folder `there` for their temporary files.
    fn start(folder: &Path) -> Self {
        let file = |name: &str| folder.join(name);
        for name in ["host", "user"] {
            key(&file(name));
        }
        fs::create_dir(file("there")).unwrap();
        fs::copy(file("user.pub"), file("authorized")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let own = Command::new("id").arg("-un").output().unwrap();
        let own = String::from_utf8(own.stdout).unwrap();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host\nPidFile {0}/pid\nAuthorizedKeysFile {0}/authorized\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
             PrintMotd no\nSetEnv TMPDIR={0}/there\n",
            folder.display()
        );
        fs::write(file("sshd_config"), config).unwrap();
        let host = fs::read_to_string(file("host.pub")).unwrap();
        fs::write(file("known"), format!("[127.0.0.1]:{port} {host}")).unwrap();
        let client = format!(
            "Host elsewhere\n  HostName 127.0.0.1\n  Port {port}\n  User {1}\n  IdentityFile {0}/user\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {0}/known\n  StrictHostKeyChecking yes\n  BatchMode yes\n",
            folder.display(),
            own.trim()
        );
        fs::write(file("ssh_config"), client).unwrap();
        // The system's client reads the configuration of the account, which is not the test's to change.
        fs::create_dir(file("bin")).unwrap();
        let real = Command::new("sh").args(["-c", "command -v ssh"]).output().unwrap();
        let real = String::from_utf8(real.stdout).unwrap();
        fs::write(
            file("bin/ssh"),
            format!("#!/bin/sh\nexec {} -F {}/ssh_config \"$@\"\n", real.trim(), folder.display()),
        )
        .unwrap();
        fs::set_permissions(file("bin/ssh"), fs::Permissions::from_mode(0o700)).unwrap();
        let made = fs::create_dir(PRIVSEP).is_ok();
        let log = fs::File::create(file("log")).unwrap();
        let child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(file("sshd_config"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("sshd is missing: make test-ssh installs it");
        let sshd = Self { child, folder: folder.to_owned(), made };
        until("sshd listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        sshd
    }

    fn command(&self, home: &Home, args: &[&str]) -> Command {
        let mut command = home.command(args);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        command
    }

    /// Files in the remote host's folder for temporary files.
    fn there(&self) -> usize {
        fs::read_dir(self.folder.join("there")).unwrap().count()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.made {
            let _ = fs::remove_dir(PRIVSEP);
        }
    }
}

#[test]
#[ignore = "needs Debian's openssh-server: make test-ssh"]
fn a_host_behind_a_real_sshd_is_audited_and_nothing_stays_there() {
    let home = Home::new();
    let folder = tempfile::tempdir().unwrap();
    let sshd = Sshd::start(folder.path());
    let server = home.server("far", &["--set", "log_bin=bin"]);
    let args = ["audit", "--ssh", "elsewhere", "--dsn", server.text("dsn"), "--window=100ms", "--json"];
    let output = sshd.command(&home, &args).output().unwrap();
    assert!(output.status.success(), "{output:?} {:?}", fs::read_to_string(folder.path().join("log")));
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = findings["findings"].as_array().unwrap();
    let binlog = all.iter().find(|f| f["claim"] == "sync-binlog-mariadb").unwrap();
    assert_eq!(binlog["state"], "violated");
    assert_eq!(findings["scope"]["server_process"], true);
    assert_eq!(sshd.there(), 0, "the program is removed");

    // A host that is not known is ssh's to refuse, in its words.
    fs::write(folder.path().join("known"), "").unwrap();
    let output = sshd.command(&home, &args).output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(3) && reported.contains("Host key verification failed"),
        "{reported}"
    );
}

#[test]
#[ignore = "needs Debian's openssh-server: make test-ssh"]
fn an_audit_over_ssh_that_is_killed_leaves_nothing_there() {
    let home = Home::new();
    let folder = tempfile::tempdir().unwrap();
    let sshd = Sshd::start(folder.path());
    let server = home.server("far", &[]);
    let args = ["audit", "--ssh", "elsewhere", "--dsn", server.text("dsn"), "--window=2s", "--json"];
    let mut audit = sshd.command(&home, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the program is there", || sshd.there() > 0);
    audit.kill().unwrap();
    audit.wait().unwrap();
    until("it is removed", || sshd.there() == 0);
}
