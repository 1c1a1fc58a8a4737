//! Where the server's settings are written: option files, the command line, settings that it persisted itself.

use mydyno_model::units::whole_bytes;
use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::client_files;
use crate::collectors::exposure::with_password;
use crate::context::{Context, Depth};
use crate::mounts;
use crate::option_files::{LARGEST_FILE, Reading, Start, facts_of, groups, normal, passed_over, read};
use crate::process::Process;
use crate::readings::Readings;
use crate::secrets;
use crate::source::{Missing, Read, Source};
use crate::version::{family_of, version_number};

/// Option files.
pub static COLLECTOR: Collector = Collector {
    name: "options",
    cost: Cost { host_ms: 3, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact("server.options.groups", "", "groups that this server reads"),
        fact(
            "server.options.files",
            "",
            "option files in the order of reading, with why one was not read and what that means: absent, required (the server does not start without it), ignored by the server, unseen by mydyno",
        ),
        fact(
            "server.options.folders",
            "",
            "folders that these files include, in the order of reading: folder, file, line, and how many of the options stand in it or before it",
        ),
        fact(
            "server.options.binlog_filters",
            "",
            "those of these options that leave schemas out of the binary log, with their values",
        ),
        fact(
            "server.options.set",
            "",
            "options in these files in the order of reading: file, line, group, name, value",
        ),
        fact(
            "server.options.faults",
            "",
            "lines of these files that are wrong: file, line, text, whether they stop the server",
        ),
        fact(
            "server.options.other_groups",
            "",
            "groups of these files that this server does not read: file, line, group, options (their names, 20 at most)",
        ),
        fact(
            "server.options.misplaced",
            "",
            "options that only servers have, in groups of these files that only clients read: file, line, group, name",
        ),
        fact(
            "server.options.passed_over",
            "",
            "files with options of the server's groups that it does not read, since their names do not end in .cnf or nothing includes their folder: file, why; 20 at most",
        ),
        fact(
            "server.options.own",
            "",
            "those of these files that the account of the server may write, where that is not root: file, mode",
        ),
        fact(
            "server.options.folklore",
            "",
            "words of old advice in the comments of these files: file, line, word (oom_score, pdflush, svctm, nobarrier)",
        ),
        fact(
            "server.options.exposed",
            "",
            "those of these files that every user of the host may read and in which a password stands: file, mode",
        ),
        fact(
            "server.options.exposed_clients",
            "",
            "option files of the host's users with a password in them that every user of the host may read: file, mode, user (the account that they name); 20 at most",
        ),
        fact(
            "server.options.clients_unverified",
            "",
            "lines in option files of clients that keep them from verifying the server's certificate: file, line; 20 at most",
        ),
        fact(
            "server.options.client_sockets",
            "",
            "sockets that option files of clients and of PHP name, that are not the server's and not there: file, socket; 20 at most",
        ),
        fact(
            "server.options.defaults_file",
            "",
            "the only option file that its command line names (--defaults-file)",
        ),
        fact(
            "server.options.pool_bytes",
            "bytes",
            "innodb_buffer_pool_size of the next start: as mysqld-auto.cnf, the command line or the last line of these files sets it",
        ),
        fact("server.options.command_line", "", "options of the command line: name and value"),
        fact(
            "server.options.persisted",
            "",
            "settings in mysqld-auto.cnf: name, value, by (who set it and when)",
        ),
    ],
    run: Run::Host(run),
};

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID/cmdline", missing),
    };
    let path = server.file("cmdline");
    let arguments = match source.bytes(&path) {
        Ok(bytes) => arguments(&bytes),
        Err(missing) => return readings.rest_is(&path, &missing),
    };
    readings.put("server.options.command_line", path, Ok(command_line(&arguments)));
    let prefix = mounts::view(source, server);
    let persisted = persisted(context, &prefix);
    readings.put("server.options.persisted", "mysqld-auto.cnf", persisted.clone());
    let over_files = [command_line(&arguments), persisted.unwrap_or_default()].concat();
    files(context, server, &arguments, (prefix, &over_files), readings);
}

fn arguments(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).split('\0').filter(|a| !a.is_empty()).map(str::to_owned).collect()
}

/// Options that select the option files. The server reads them before all others.
const OF_THE_READING: [&str; 5] =
    ["no_defaults", "print_defaults", "defaults_file", "defaults_extra_file", "defaults_group_suffix"];

fn command_line(arguments: &[String]) -> Vec<Value> {
    let is_own = |argument: &String| {
        let name = normal(argument.split('=').next().unwrap_or_default());
        !OF_THE_READING.contains(&name.as_str())
    };
    let options = arguments.iter().skip(1).filter(|a| a.starts_with("--") && is_own(a));
    options
        .map(|argument| {
            let (name, value) =
                argument.split_once('=').map_or((argument.as_str(), None), |(n, v)| (n, Some(v)));
            let written = name.trim_start_matches('-');
            let name = normal(name);
            let secret = secrets::is_secret_variable(&name);
            let value = value.filter(|_| !secret);
            json!({"name": name, "written": written, "value": value, "secret": secret})
        })
        .collect()
}

fn files(
    context: &Context,
    server: &Process,
    arguments: &[String],
    (prefix, over_files): (Read<String>, &[Value]),
    readings: &Readings,
) {
    let source = &context.source;
    let from = "option files";
    let version = context.variable("version").ok_or_else(|| {
        Missing::Absent("the server's version is not known, so neither are its groups".to_owned())
    });
    let read_groups = version.and_then(|v| Ok((family_of(v), version_number(v)?)));
    let start = Start::of(arguments);
    let only = start.only.clone().ok_or_else(|| Missing::Absent("the command line names none".to_owned()));
    readings.put("server.options.defaults_file", "/proc/PID/cmdline", only);
    let found = read_groups.and_then(|(family, number)| {
        let groups = groups(&family, number, start.suffix.as_deref());
        let (homes, home) = homes(source, server);
        let files = start.files(built_in(source, server, &family), &homes, home.as_deref());
        let prefix = prefix?;
        let mut reading = read(source, &prefix, &files, &groups);
        let were_read = reading.files.iter().filter(|file| file.not_read.is_none());
        let words: Vec<Value> =
            were_read.flat_map(|file| folklore(source, &prefix, &file.path)).take(20).collect();
        readings.put("server.options.folklore", from, Ok(words));
        let were_read = reading.files.iter().filter(|file| file.not_read.is_none());
        let exposed =
            were_read.filter_map(|file| with_password(source, &prefix, &file.path)).collect::<Vec<Value>>();
        readings.put("server.options.exposed", from, Ok(exposed));
        let known: Vec<&str> = reading
            .files
            .iter()
            .filter(|file| file.not_read.is_none())
            .map(|file| file.path.as_str())
            .collect();
        readings.put("server.options.exposed_clients", from, Ok(client_files::exposed(source, &known)));
        let all: Vec<String> = known.iter().map(|file| format!("{prefix}{file}")).collect();
        readings.put("server.options.clients_unverified", from, Ok(client_files::unverified(source, &all)));
        let sockets = match (prefix.is_empty(), context.variable("socket")) {
            (true, Some(socket)) => {
                let known: Vec<String> = known.iter().map(|file| (*file).to_owned()).collect();
                Ok(client_files::sockets(source, &known, &context.within_datadir(socket)))
            }
            _ => Err(Missing::Absent("the server has no socket that clients of this host see".to_owned())),
        };
        readings.put("server.options.client_sockets", from, sockets);
        let usual = start.only.is_none() && !start.no_defaults;
        let passed = passed_over(source, &prefix, &reading, &groups, usual);
        readings.put("server.options.passed_over", from, Ok(passed));
        readings.put("server.options.own", from, own(source, server, &prefix, &reading));
        for named in start.only.iter().chain(&start.extra) {
            reading.require(named);
        }
        readings.put("server.options.pool_bytes", from, pool_bytes(&reading, over_files));
        Ok((groups, reading))
    });
    let (groups, reading) = match found {
        Ok(found) => found,
        Err(missing) => return readings.rest_is(from, &missing),
    };
    for (id, value) in facts_of(&groups, reading) {
        let source = if id == "server.options.groups" { "the server's version" } else { from };
        readings.put(id, source, Ok(value));
    }
}

/// Files that the server's account may write, itself or by its group.
fn own(source: &Source, server: &Process, prefix: &str, reading: &Reading) -> Read<Vec<Value>> {
    let account = source.stat(&server.file("stat"))?;
    if account.uid == 0 {
        return Ok(Vec::new());
    }
    let were_read = reading.files.iter().filter(|file| file.not_read.is_none());
    let may_write = |path: &str| {
        let found = source.stat(&format!("{prefix}{path}")).ok()?;
        let by_owner = found.uid == account.uid && found.mode & libc::S_IWUSR != 0;
        let by_group = found.gid == account.gid && found.mode & libc::S_IWGRP != 0;
        let mode = format!("{:04o}", found.mode & 0o7777);
        (by_owner || by_group).then(|| json!({"file": path, "mode": mode}))
    };
    let mut found: Vec<Value> = were_read.filter_map(|file| may_write(&file.path)).collect();
    found.dedup();
    Ok(found)
}

/// Words of old advice in the comments of an option file.
fn folklore(source: &Source, prefix: &str, path: &str) -> Vec<Value> {
    const WORDS: [&str; 4] = ["oom_score", "pdflush", "svctm", "nobarrier"];
    let text = source.text_within(&format!("{prefix}{path}"), LARGEST_FILE).unwrap_or_default();
    let mut found = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let whole = line.trim_start().strip_prefix(';');
        let comment = whole.or_else(|| line.split_once('#').map(|(_, comment)| comment));
        let comment = comment.unwrap_or_default().to_ascii_lowercase();
        for word in WORDS.iter().filter(|word| comment.contains(**word)) {
            found.push(json!({"file": path, "line": place + 1, "word": word}));
        }
    }
    found
}

/// The option file path compiled into a MySQL that was not packaged for a distribution, as reported by releases 5.5 to
/// 8.0; it does not depend on the installation folder.
fn built_in(source: &Source, server: &Process, family: &str) -> Option<&'static str> {
    let program = source.link(&server.file("exe")).unwrap_or_default();
    let packaged =
        ["/usr/sbin/", "/usr/bin/", "/usr/libexec/"].iter().any(|folder| program.starts_with(folder));
    (family == "mysql" && !packaged).then_some("/usr/local/mysql/etc/my.cnf")
}

/// Folders of the server's environment that may hold an option file.
fn homes(source: &Source, server: &Process) -> (Vec<String>, Option<String>) {
    // Reading the environment of another user's server is refused; the files common to all servers are still known.
    let environment =
        source.bytes(&server.file("environ")).map(|bytes| arguments(&bytes)).unwrap_or_default();
    let of = |name: &str| {
        environment.iter().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    };
    (["MYSQL_HOME", "MARIADB_HOME"].iter().filter_map(|name| of(name)).collect(), of("HOME"))
}

/// The buffer pool of the next start. What was persisted overrides the command line, and that the option files.
fn pool_bytes(reading: &Reading, over_files: &[Value]) -> Read<u64> {
    const NAME: &str = "innodb_buffer_pool_size";
    let of_files = reading.options.iter().rev().find(|option| normal(&option.name) == NAME);
    let of_files = of_files.and_then(|option| option.value.clone());
    let over = over_files.iter().rev().find(|option| option["name"] == NAME);
    let over = over.and_then(|option| match &option["value"] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    let text = over.or(of_files).ok_or_else(|| Missing::Absent(format!("nothing sets {NAME}")))?;
    whole_bytes(&text).ok_or_else(|| Missing::Error(format!("{NAME} = {text} is no size")))
}

/// Settings that SET PERSIST wrote, whatever the version of the file.
fn persisted(context: &Context, prefix: &Read<String>) -> Read<Vec<Value>> {
    let path = format!("{}/mysqld-auto.cnf", context.datadir()?);
    let reached = format!("{}{path}", prefix.as_ref().map_err(Clone::clone)?);
    let text = context.source.text_within(&reached, LARGEST_FILE)?;
    let document: Value =
        serde_json::from_str(&text).map_err(|e| Missing::Error(format!("{path} is not valid JSON: {e}")))?;
    let mut found = Vec::new();
    values(&document, &mut found);
    Ok(found)
}

/// Objects with a `Value`, by their keys; versions of the file nest them at different depths.
fn values(node: &Value, found: &mut Vec<Value>) {
    let Some(map) = node.as_object() else { return };
    for (name, inner) in map {
        match inner.get("Value") {
            Some(value) => {
                let name = normal(name);
                let value = (!secrets::is_secret_variable(&name)).then_some(value);
                let mut entry = json!({"name": name, "value": value});
                if let Some(by) = inner.get("Metadata").and_then(by) {
                    entry["by"] = by.into();
                }
                found.push(entry);
            }
            None => values(inner, found),
        }
    }
}

/// Who persisted a setting, and when: the file has the time in microseconds.
fn by(metadata: &Value) -> Option<String> {
    let text = |key: &str| metadata.get(key)?.as_str();
    let seconds = metadata.get("Timestamp")?.as_i64()? / 1_000_000;
    let day = time::OffsetDateTime::from_unix_timestamp(seconds).ok()?.date();
    Some(format!("{}@{} on {day}", text("User")?, text("Host").unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persisted_settings_are_found_in_both_forms_of_the_file() {
        for text in [
            r#"{"Version":1,"mysql_server":{"max_connections":{"Value":"7","Metadata":{}}}}"#,
            r#"{"Version":2,"mysql_dynamic_variables":{"max_connections":{"Value":"7","Metadata":{"Host":"h"}}}}"#,
        ] {
            let mut found = Vec::new();
            values(&serde_json::from_str(text).unwrap(), &mut found);
            assert_eq!(found, [json!({"name": "max_connections", "value": "7"})]);
        }
    }

    #[test]
    fn who_persisted_a_setting_is_told_with_the_day() {
        let text = r#"{"mysql_dynamic_variables":{"a":{"Value":"7","Metadata":{"Timestamp":1700000000000000,"User":"root","Host":"localhost"}}}}"#;
        let mut found = Vec::new();
        values(&serde_json::from_str(text).unwrap(), &mut found);
        assert_eq!(found[0]["by"], "root@localhost on 2023-11-14");
    }

    #[test]
    fn the_pool_of_the_next_start_is_that_of_the_last_line_unless_it_is_persisted() {
        let (_tree, source) = crate::tree::tree(&[(
            "etc/my.cnf",
            "[mysqld]\ninnodb-buffer-pool-size = 2G\ninnodb_buffer_pool_size = 12G\n",
        )]);
        let start = Start { only: Some("/etc/my.cnf".into()), ..Start::default() };
        let reading = read(&source, "", &start.files(None, &[], None), &groups("mariadb", 110_800, None));
        assert_eq!(pool_bytes(&reading, &[]), Ok(12 << 30));
        let persisted = [json!({"name": "innodb_buffer_pool_size", "value": "1073741824"})];
        assert_eq!(pool_bytes(&reading, &persisted), Ok(1 << 30));
        assert!(matches!(pool_bytes(&Reading::default(), &[]), Err(Missing::Absent(_))));
    }

    #[test]
    fn words_of_old_advice_are_found_in_comments_only() {
        let text = "[mysqld]\n# pdflush writes late, see svctm\n; NOBARRIER is safe here\nsocket = /run/svctm # oom_score\n";
        let (_tree, source) = crate::tree::tree(&[("etc/my.cnf", text)]);
        let found = folklore(&source, "", "/etc/my.cnf");
        let lines: Vec<(&Value, &Value)> = found.iter().map(|f| (&f["line"], &f["word"])).collect();
        let expected = [(2, "pdflush"), (2, "svctm"), (3, "nobarrier"), (4, "oom_score")];
        let expected: Vec<(Value, Value)> = expected.iter().map(|(n, w)| (json!(n), json!(w))).collect();
        assert_eq!(lines, expected.iter().map(|(n, w)| (n, w)).collect::<Vec<_>>());
    }

    #[test]
    fn options_of_the_command_line_keep_no_secret() {
        let line = [
            "mysqld",
            "--no-defaults",
            "--Max-Connections=5",
            "--report-password=hunter2",
            "--skip-networking",
            "ignored",
        ];
        let line: Vec<String> = line.iter().map(|a| (*a).to_owned()).collect();
        assert_eq!(
            command_line(&line),
            [
                json!({"name": "max_connections", "written": "Max-Connections", "value": "5", "secret": false}),
                json!({"name": "report_password", "written": "report-password", "value": null, "secret": true}),
                json!({"name": "skip_networking", "written": "skip-networking", "value": null, "secret": false}),
            ]
        );
    }
}
