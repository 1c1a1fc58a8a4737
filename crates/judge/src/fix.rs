//! Writes the remedies of an audit to files, which an administrator reviews and applies; nothing is applied here.

use std::fmt::Write as _;

use mydyno_model::claim::StepKind;
use mydyno_model::finding::{Finding, Findings, RemedyStep, State};

use mydyno_model::text;

pub use fragment::Fragment;
use settings::{Settings, Taken};

mod ansible;
mod fragment;
mod settings;
mod tuned;

/// A file of the remedies' folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixFile {
    /// Its path within the folder.
    pub path: &'static str,
    /// Its text.
    pub text: String,
}

/// Removing a file does not reset the values in the running kernel.
const KERNEL_BACK: &str = "remove it there and run `undo.sh`, or restart the host: removing it alone changes nothing that is set already";

/// A file that collects the steps of one form.
struct Form {
    kind: StepKind,
    path: &'static str,
    head: &'static str,
    goes: &'static str,
    back: &'static str,
}

/// The first line of each file.
const COMMENT: &str = "# Written by `mydyno audit --fix`. Each line names the claim that asks for it.\n";

/// Files with persistent settings. Removing an installed file is not a complete undo: the running kernel keeps the
/// values.
const LASTING: [Form; 6] = [
    Form {
        kind: StepKind::Cnf,
        path: "option-file/zz-mydyno.cnf",
        head: "[mysqld]\n",
        // Depends on the server: see `Fragment::goes`.
        goes: "",
        back: "remove it there and restart the server",
    },
    Form {
        kind: StepKind::Sysctl,
        path: "sysctl.d/60-mydyno.conf",
        head: "",
        goes: "/etc/sysctl.d; then `sysctl --system`",
        back: KERNEL_BACK,
    },
    Form {
        kind: StepKind::Udev,
        path: "udev/60-mydyno.rules",
        head: "",
        goes: "/etc/udev/rules.d; then `udevadm control --reload && udevadm trigger`",
        back: KERNEL_BACK,
    },
    Form {
        kind: StepKind::Systemd,
        path: "systemd/mydyno.conf",
        head: "[Service]\n",
        goes: "/etc/systemd/system/UNIT.service.d (UNIT is the server's: mariadb, mysql or mysqld); then `systemctl daemon-reload` and restart it",
        back: "remove it there, `systemctl daemon-reload`, restart the server",
    },
    Form {
        kind: StepKind::Tmpfiles,
        path: "tmpfiles.d/mydyno.conf",
        head: "",
        goes: "/etc/tmpfiles.d; then `systemd-tmpfiles --create`",
        back: KERNEL_BACK,
    },
    Form {
        kind: StepKind::Kernel,
        path: "kernel-parameters.txt",
        head: "",
        goes: "the boot loader's command line (GRUB_CMDLINE_LINUX, grubby); then restart the host",
        back: "take them out there and restart the host",
    },
];

/// The files for all findings that are violated and not accepted; `fragment` is the location of options. Empty when
/// there is nothing to correct.
pub fn fix(findings: &Findings, fragment: &Fragment) -> Vec<FixFile> {
    let wanted: Vec<&Finding> = findings
        .findings
        .iter()
        .filter(|f| f.state == State::Violated && f.accepted.is_none() && f.remedy.is_some())
        .collect();
    if wanted.is_empty() {
        return vec![];
    }
    let mut files = Vec::new();
    let mut guide = guide_head(findings);
    statements(&wanted, &mut files, &mut guide);
    commands(&wanted, &mut files, &mut guide);
    for form in &LASTING {
        let text = lasting(&wanted, form);
        if !text.is_empty() {
            let goes = if form.kind == StepKind::Cnf { fragment.goes() } else { form.goes.to_owned() };
            let _ = writeln!(guide, "- `{}` goes to {goes}. To undo: {}.", form.path, form.back);
            files.push(FixFile { path: form.path, text: format!("{COMMENT}{}{text}", form.head) });
        }
    }
    other_ways(findings, fragment, &mut files, &mut guide);
    conflicts(&wanted, &mut guide);
    by_hand(&wanted, &mut guide);
    files.push(FixFile { path: "README.md", text: guide });
    files
}

fn guide_head(findings: &Findings) -> String {
    format!(
        "# Remedies\n\nFor {}, from an audit of {}. Nothing here has been applied: read each line first. What takes effect at \
         once and what lasts are apart, and each has its way back.\n\n",
        if findings.scope.server.is_empty() {
            "this host".to_owned()
        } else {
            text::markdown(&findings.scope.server)
        },
        findings.facts_created
    )
}

fn now(finding: &Finding) -> &[RemedyStep] {
    finding.remedy.as_ref().map(|r| r.now.as_slice()).unwrap_or_default()
}

fn persistent(finding: &Finding) -> &[RemedyStep] {
    finding.remedy.as_ref().map(|r| r.persistent.as_slice()).unwrap_or_default()
}

/// Steps of one kind, each formatted by `write`; where another finding already sets the same setting, a comment that
/// begins with `mark` says so instead.
fn each_once<'s>(
    steps: impl IntoIterator<Item = &'s RemedyStep>,
    claim: &str,
    settings: &mut Settings,
    mark: &str,
    write: impl Fn(&RemedyStep) -> Option<String>,
) -> String {
    let mut text = String::new();
    for step in steps {
        let Some(written) = write(step) else { continue };
        let _ = match settings.take(step.kind, claim, &step.text) {
            None => {
                text.push_str(&written);
                continue;
            }
            Some(Taken { by, otherwise: None }) => {
                writeln!(text, "{mark} {claim} asks for what is set for {by}")
            }
            Some(Taken { by, otherwise: Some(_) }) => {
                let wanted = step.text.replace('\n', " ");
                writeln!(text, "{mark} {claim} asks for: {wanted} (set for {by})")
            }
        };
    }
    text
}

/// Statements that take effect at once, and their undo statements in reverse order.
fn statements(wanted: &[&Finding], files: &mut Vec<FixFile>, guide: &mut String) {
    let sql = |steps: &[RemedyStep], claim: &str, settings: &mut Settings| -> String {
        each_once(steps, claim, settings, "--", |s| {
            let statement = || format!("-- {claim}\n{};\n", s.text.trim_end_matches(';'));
            (s.kind == StepKind::Sql).then(statement)
        })
    };
    let mut settings = Settings::default();
    let forward: String = wanted
        .iter()
        .map(|f| sql(now(f), &f.claim, &mut settings) + &sql(persistent(f), &f.claim, &mut settings))
        .collect();
    let mut settings = Settings::default();
    let back: String = wanted.iter().rev().map(|f| sql(&f.undo, &f.claim, &mut settings)).collect();
    if forward.is_empty() {
        return;
    }
    guide.push_str("- `now.sql` takes effect at once on the server: `mariadb --force < now.sql` (or `mysql --force < now.sql`; without --force a client ends at the first statement that is refused). Each that is refused is told with its line");
    files.push(FixFile { path: "now.sql", text: forward });
    if back.is_empty() {
        guide.push_str(".\n");
    } else {
        guide.push_str("; `undo.sql` puts back the values of the audit, likewise.\n");
        files.push(FixFile { path: "undo.sql", text: back });
    }
}

/// Commands for the host that take effect at once, and their undo commands.
fn commands(wanted: &[&Finding], files: &mut Vec<FixFile>, guide: &mut String) {
    let shell = |steps: &[RemedyStep], claim: &str, settings: &mut Settings| -> String {
        each_once(steps, claim, settings, "#", |s| {
            let line = match s.kind {
                StepKind::Shell => s.text.clone(),
                StepKind::Sysctl => {
                    let (name, value) = s.text.split_once('=')?;
                    format!("sysctl -w {}='{}'", name.trim(), value.trim().replace('\'', ""))
                }
                _ => return None,
            };
            // The script reports a line that fails and runs the others nevertheless: a partial undo would be worse.
            Some(format!("# {claim}\n(\n{line}\n) || failed {claim}\n"))
        })
    };
    let mut settings = Settings::default();
    let forward: String = wanted.iter().map(|f| shell(now(f), &f.claim, &mut settings)).collect();
    let mut settings = Settings::default();
    let back: String = wanted.iter().rev().map(|f| shell(&f.undo, &f.claim, &mut settings)).collect();
    if forward.is_empty() {
        return;
    }
    let head = "#!/bin/sh\n# Written by `mydyno audit --fix`; run it as root. Its status is 1 when a line failed.\nstatus=0\nfailed() { echo \"$1: this line failed\" >&2; status=1; }\n";
    let end = "exit $status\n";
    guide.push_str(
        "- `now.sh` takes effect at once on the host; `undo.sh` puts back the values of the audit.\n",
    );
    files.push(FixFile { path: "now.sh", text: format!("{head}{forward}{end}") });
    files.push(FixFile { path: "undo.sh", text: format!("{head}{back}{end}") });
}

/// Lines of one form. When two claims set the same setting, the more urgent claim, which comes first, wins.
fn lasting(wanted: &[&Finding], form: &Form) -> String {
    let mut settings = Settings::default();
    let one = |f: &&Finding| {
        each_once(persistent(f), &f.claim, &mut settings, "#", |s| {
            (s.kind == form.kind).then(|| format!("# {}\n{}\n", f.claim, s.text))
        })
    };
    wanted.iter().map(one).collect()
}

/// Lists settings for which two findings request different values.
fn conflicts(wanted: &[&Finding], guide: &mut String) {
    let (mut at_once, mut lasting) = (Settings::default(), Settings::default());
    let mut lines: Vec<String> = Vec::new();
    for finding in wanted {
        let steps =
            now(finding).iter().map(|s| (true, s)).chain(persistent(finding).iter().map(|s| (false, s)));
        for (now, step) in steps {
            let settings = if now { &mut at_once } else { &mut lasting };
            if let Some(Taken { by, otherwise: Some(written) }) =
                settings.take(step.kind, &finding.claim, &step.text)
            {
                let line = format!(
                    "- {} asks for `{}`; written is `{written}`, for {by}.\n",
                    finding.claim, step.text
                );
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
    }
    if !lines.is_empty() {
        guide.push_str("\n## Conflicts\n\nOf two findings that ask for one setting, the more urgent has it. Look whether it does for both, and audit again afterwards.\n\n");
        guide.push_str(&lines.concat());
    }
}

/// The same remedies as a tuned profile and as Ansible plays.
fn other_ways(findings: &Findings, fragment: &Fragment, files: &mut Vec<FixFile>, guide: &mut String) {
    let profile = tuned::profile(files);
    let plays = ansible::plays(files, &findings.scope.server, fragment);
    if profile.is_some() {
        let _ = writeln!(
            guide,
            "- `{}` holds the host's settings once more, for a host on which tuned runs: copy it to /etc/tuned/mydyno, name the active profile (`tuned-adm active`) in its line `include`, then `tuned-adm profile mydyno`. To undo: `tuned-adm profile` with the one from before, remove the folder.",
            tuned::PATH
        );
    }
    if !plays.is_empty() {
        let _ = writeln!(
            guide,
            "- `{}` puts all files in their places by Ansible, with `-e mydyno_now=true` it runs what takes effect at once too, and with `-e mydyno_restart=true` it restarts the server; `{}` takes all of it back. Its first lines say how to see what it would do.",
            ansible::APPLY,
            ansible::UNDO
        );
    }
    files.extend(profile.into_iter().chain(plays));
}

/// Steps that no file can contain, and risks.
fn by_hand(wanted: &[&Finding], guide: &mut String) {
    for finding in wanted {
        let Some(remedy) = &finding.remedy else { continue };
        let _ = write!(
            guide,
            "\n## {}\n\n{}\n\nRisk: {}\n",
            text::markdown(&finding.claim),
            text::markdown_prose(&finding.summary),
            text::markdown_prose(&remedy.risk)
        );
        let words = remedy.now.iter().chain(&remedy.persistent);
        for step in words.filter(|s| matches!(s.kind, StepKind::Text | StepKind::Shell)) {
            let lasting_shell = step.kind == StepKind::Text || persistent(finding).contains(step);
            if lasting_shell {
                let _ = write!(
                    guide,
                    "\nBy hand:\n\n    {}\n",
                    text::visible(&step.text).replace('\n', "\n    ")
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
