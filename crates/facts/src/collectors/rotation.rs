//! Whether logrotate moves the server's logs away, and leaves files that the server may write.

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::mounts;
use crate::process::Process;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Logs and their rotation.
pub static COLLECTOR: Collector = Collector {
    name: "rotation",
    cost: Cost { host_ms: 3, server_ms: 0 },
    deadline_ms: 1000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.logs.not_rotated",
            "",
            "logs of the server that are written and that no file of logrotate names, of 1 MiB or more: file, size_bytes",
        ),
        fact(
            "server.logs.unwritable",
            "",
            "logs of the server that are written and that belong to another user whose permissions keep the server from writing: file, mode, user",
        ),
        fact(
            "server.logs.created_for_others",
            "",
            "files of logrotate that make a new log of the server for another user than the server's: file, user",
        ),
    ],
    run: Run::Host(run),
};

/// Files of logrotate that are read, and the largest.
const MOST_FILES: usize = 200;
const LARGEST: u64 = 256 << 10;

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID", missing),
    };
    let source = &context.source;
    let view = match mounts::view(source, server) {
        Ok(view) => view,
        Err(missing) => return readings.rest_is("/proc/PID/mountinfo", &missing),
    };
    let logs = logs(context);
    readings.put("server.logs.unwritable", "stat(2)", unwritable(source, server, &view, &logs));
    let stanzas = match view.is_empty() {
        true => stanzas(source),
        false => Err(Missing::Absent("the server sees other files than this host's logrotate".to_owned())),
    };
    let not_rotated = stanzas.as_ref().map_err(Clone::clone).map(|stanzas| {
        let sized = logs.iter().filter_map(|log| Some((log, source.stat(log).ok()?)));
        let large =
            sized.filter(|(_, file)| file.mode & 0o170_000 == 0o100_000 && file.size_bytes >= 1 << 20);
        let named =
            |log: &str| stanzas.iter().any(|stanza| stanza.globs.iter().any(|glob| matches(glob, log)));
        large
            .filter(|(log, _)| !named(log))
            .map(|(log, file)| json!({"file": log, "size_bytes": file.size_bytes}))
            .collect::<Vec<Value>>()
    });
    readings.put("server.logs.not_rotated", "/etc/logrotate.d", not_rotated);
    let others = stanzas.and_then(|stanzas| {
        let own = source.stat(&server.file("stat"))?.uid;
        let users = source.text_within("/etc/passwd", 1 << 20).unwrap_or_default();
        let differs = |stanza: &&Stanza| {
            let of_log = logs.iter().any(|log| stanza.globs.iter().any(|glob| matches(glob, log)));
            let user = stanza.owner.as_deref().and_then(|owner| number(&users, owner));
            of_log && own != 0 && user.is_some_and(|user| user != own)
        };
        let found = stanzas.iter().filter(differs);
        Ok(found.map(|s| json!({"file": s.file, "user": s.owner})).collect::<Vec<Value>>())
    });
    readings.put("server.logs.created_for_others", "/etc/logrotate.d", others);
}

/// Logs that the server writes now, by their whole paths.
fn logs(context: &Context) -> Vec<String> {
    let on = |name: &str| context.variable(name).is_some_and(|value| ["ON", "1"].contains(&value));
    let to_file =
        context.variable("log_output").is_none_or(|output| output.to_ascii_uppercase().contains("FILE"));
    let mut named = Vec::new();
    named.extend(context.variable("log_error").filter(|path| *path != "stderr"));
    for (switch, file) in [("slow_query_log", "slow_query_log_file"), ("general_log", "general_log_file")] {
        named.extend(context.variable(file).filter(|_| on(switch) && to_file));
    }
    let whole = |path: &str| match (path.starts_with('/'), context.datadir()) {
        (false, Ok(datadir)) => format!("{datadir}/{}", path.trim_start_matches("./")),
        _ => path.to_owned(),
    };
    named.into_iter().map(whole).collect()
}

fn unwritable(source: &Source, server: &Process, view: &str, logs: &[String]) -> Read<Vec<Value>> {
    let of_server = source.stat(&server.file("stat"))?;
    let (user, group) = (of_server.uid, of_server.gid);
    let mut found = Vec::new();
    for log in logs.iter().filter(|_| user != 0) {
        let Ok(file) = source.stat(&format!("{view}{log}")) else { continue };
        let groups = source.read(&server.file("status")).unwrap_or_default();
        let groups =
            groups.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default().to_owned();
        let is_member = file.gid == group || groups.split_whitespace().any(|id| id == file.gid.to_string());
        let may = match () {
            () if file.uid == user => file.mode & 0o200 != 0,
            () if is_member => file.mode & 0o020 != 0,
            () => file.mode & 0o002 != 0,
        };
        if !may && file.mode & 0o170_000 == 0o100_000 {
            let mode = format!("{:04o}", file.mode & 0o7777);
            found.push(json!({"file": log, "mode": mode, "user": file.uid.to_string()}));
        }
    }
    Ok(found)
}

/// Part of a file of logrotate that is about some logs.
#[derive(Debug, PartialEq, Eq)]
struct Stanza {
    file: String,
    globs: Vec<String>,
    /// The user that `create` gives the new file to.
    owner: Option<String>,
}

fn stanzas(source: &Source) -> Read<Vec<Stanza>> {
    let main = "/etc/logrotate.conf";
    if !source.exists(main) {
        return Err(Missing::Absent("logrotate is not set up on this host".to_owned()));
    }
    let names = match source.list("/etc/logrotate.d") {
        Err(Missing::Absent(_)) => Vec::new(),
        other => other?,
    };
    let files = names.into_iter().take(MOST_FILES).map(|name| format!("/etc/logrotate.d/{name}"));
    let mut found = Vec::new();
    for file in std::iter::once(main.to_owned()).chain(files) {
        match source.text_within(&file, LARGEST) {
            Ok(text) => found.extend(of_text(&file, &text)),
            Err(denied @ Missing::Denied(_)) => return Err(denied),
            // A folder, or a file of another kind, names no log.
            Err(_) => {}
        }
    }
    Ok(found)
}

fn of_text(file: &str, text: &str) -> Vec<Stanza> {
    let mut found: Vec<Stanza> = Vec::new();
    let mut globs: Vec<String> = Vec::new();
    let mut inside = false;
    let mut in_script = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let first = line.split_whitespace().next().unwrap_or_default();
        match (inside, in_script) {
            (true, true) => in_script = first != "endscript",
            (true, false) => match first {
                "}" => inside = false,
                "postrotate" | "prerotate" | "firstaction" | "lastaction" | "preremove" => in_script = true,
                "create" => {
                    let owner = line
                        .split_whitespace()
                        .find(|word| *word != "create" && !word.bytes().all(|byte| byte.is_ascii_digit()));
                    if let Some(stanza) = found.last_mut() {
                        stanza.owner = owner.map(str::to_owned);
                    }
                }
                _ => {}
            },
            (false, _) => {
                let (paths, opens) = line.split_once('{').map_or((line, false), |(paths, _)| (paths, true));
                let is_list = paths.starts_with(['/', '"', '\'']) || (opens && paths.is_empty());
                if is_list {
                    let words =
                        paths.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned());
                    globs.extend(words);
                }
                if opens {
                    found.push(Stanza {
                        file: file.to_owned(),
                        globs: std::mem::take(&mut globs),
                        owner: None,
                    });
                    inside = !line.ends_with('}');
                }
            }
        }
    }
    found
}

/// Whether a path matches a glob, part by part.
fn matches(glob: &str, path: &str) -> bool {
    let (globs, parts): (Vec<&str>, Vec<&str>) = (glob.split('/').collect(), path.split('/').collect());
    globs.len() == parts.len()
        && globs.iter().zip(parts).all(|(glob, part)| of_part(glob.as_bytes(), part.as_bytes()))
}

/// Whether a name matches a part of a glob. One with a choice, as `{a,b}` or `[0-9]`, is taken to match.
fn of_part(glob: &[u8], text: &[u8]) -> bool {
    if glob.iter().any(|byte| [b'[', b'{'].contains(byte)) {
        return true;
    }
    let (mut at, mut from) = (0, 0);
    // The last star, and how far it reaches.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at + 1, from));
                at += 1;
            }
            Some(c) if *c == b'?' || *c == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((behind, reach)) = star else { return false };
                star = Some((behind, reach + 1));
                (at, from) = (behind, reach + 1);
            }
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}

/// A user's number.
fn number(users: &str, name: &str) -> Option<u32> {
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split(':').nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stanzas_tell_the_paths_and_for_whom_the_new_file_is() {
        let text = "weekly\ninclude /etc/logrotate.d\n# /x {\n/var/log/mysql.log\n/var/log/mysql/*log {\n daily\n create 640 root adm\n postrotate\n   create x\n }\n endscript\n}\n\"/var/log/a b.log\" /c { }\n";
        let found = of_text("/etc/logrotate.d/mysql", text);
        assert_eq!(found[0].globs, ["/var/log/mysql.log", "/var/log/mysql/*log"]);
        assert_eq!(found[0].owner.as_deref(), Some("root"));
        assert_eq!(found.len(), 2);
        assert_eq!(number("root:x:0:0\nmysql:x:112:118:x\n", "mysql"), Some(112));
    }

    #[test]
    fn a_path_matches_a_glob_by_its_parts() {
        for (glob, path, is) in [
            ("/var/log/mysql/*log", "/var/log/mysql/error.log", true),
            ("/var/log/mysql/*", "/var/log/mysql/slow/slow.log", false),
            ("/var/log/mysql.???", "/var/log/mysql.log", true),
            ("/var/log/mysql/*.err", "/var/log/mysql/error.log", false),
            ("/var/lib/*/*.err", "/var/lib/mysql/db1.err", true),
            ("/var/log/mysql/{error,slow}.log", "/var/log/mysql/slow.log", true),
            ("/var/log/mysql[0-9]/*.log", "/var/log/mysql2/slow.log", true),
            ("/l/*a*a*a*a*a*a*a*a*a*b", "/l/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("/l/*a*b", "/l/xaxb", true),
        ] {
            assert_eq!(matches(glob, path), is, "{glob} {path}");
        }
    }
}
