//! The remedies of an audit as files that an administrator looks at and applies; nothing is applied here.

use std::fmt::Write as _;

use mydyno_model::claim::StepKind;
use mydyno_model::finding::{Finding, Findings, RemedyStep, State};

/// A file of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixFile {
    /// Its path within the folder.
    pub path: &'static str,
    /// Its text.
    pub text: String,
}

/// Removing a file takes nothing back that the kernel holds.
const KERNEL_BACK: &str = "remove it there and run `undo.sh`, or restart the host: removing it alone changes nothing that is set already";

/// A file that collects steps of one form.
struct Form {
    kind: StepKind,
    path: &'static str,
    head: &'static str,
    goes: &'static str,
    back: &'static str,
}

/// The first line of each file.
const COMMENT: &str = "# Written by `mydyno audit --fix`. Each line names the claim that asks for it.\n";

/// Files of what lasts. Removing the file that was copied is not the whole way back: what was set stays set in the
/// running kernel.
const LASTING: [Form; 6] = [
    Form {
        kind: StepKind::Cnf,
        path: "option-file/zz-mydyno.cnf",
        head: "[mysqld]\n",
        goes: "/etc/mysql/conf.d, /etc/mysql/mariadb.conf.d or /etc/my.cnf.d, whichever this server reads last; then restart it",
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

/// The files for all findings that are violated and not accepted. Empty when there is nothing to put right.
pub fn fix(findings: &Findings) -> Vec<FixFile> {
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
            let _ = writeln!(guide, "- `{}` goes to {}. To undo: {}.", form.path, form.goes, form.back);
            files.push(FixFile { path: form.path, text: format!("{COMMENT}{}{text}", form.head) });
        }
    }
    by_hand(&wanted, &mut guide);
    files.push(FixFile { path: "README.md", text: guide });
    files
}

fn guide_head(findings: &Findings) -> String {
    format!(
        "# Remedies\n\nFor {}, from an audit of {}. Nothing here has been applied: read each line first. What takes effect at \
         once and what lasts are apart, and each has its way back.\n\n",
        if findings.scope.server.is_empty() { "this host" } else { &findings.scope.server },
        findings.facts_created
    )
}

fn now(finding: &Finding) -> &[RemedyStep] {
    finding.remedy.as_ref().map(|r| r.now.as_slice()).unwrap_or_default()
}

fn persistent(finding: &Finding) -> &[RemedyStep] {
    finding.remedy.as_ref().map(|r| r.persistent.as_slice()).unwrap_or_default()
}

/// Statements that take effect at once, and those that undo them, the last first.
fn statements(wanted: &[&Finding], files: &mut Vec<FixFile>, guide: &mut String) {
    let sql = |steps: &[RemedyStep], claim: &str| -> String {
        let statements = steps.iter().filter(|s| s.kind == StepKind::Sql);
        statements.map(|s| format!("-- {claim}\n{};\n", s.text.trim_end_matches(';'))).collect()
    };
    let forward: String =
        wanted.iter().map(|f| sql(now(f), &f.claim) + &sql(persistent(f), &f.claim)).collect();
    let back: String = wanted.iter().rev().map(|f| sql(&f.undo, &f.claim)).collect();
    if forward.is_empty() {
        return;
    }
    guide.push_str("- `now.sql` takes effect at once on the server");
    files.push(FixFile { path: "now.sql", text: forward });
    if back.is_empty() {
        guide.push_str(".\n");
    } else {
        guide.push_str("; `undo.sql` puts back the values of the audit.\n");
        files.push(FixFile { path: "undo.sql", text: back });
    }
}

/// Commands for the host that take effect at once, and those that undo them.
fn commands(wanted: &[&Finding], files: &mut Vec<FixFile>, guide: &mut String) {
    let shell = |steps: &[RemedyStep], claim: &str| -> String {
        let lines = steps.iter().filter_map(|s| match s.kind {
            StepKind::Shell => Some(s.text.clone()),
            StepKind::Sysctl => {
                let (name, value) = s.text.split_once('=')?;
                Some(format!("sysctl -w {}='{}'", name.trim(), value.trim().replace('\'', "")))
            }
            _ => None,
        });
        // A line that fails is named, and the others are run all the same: half an undo is worse than none.
        lines.map(|line| format!("# {claim}\n(\n{line}\n) || failed {claim}\n")).collect()
    };
    let forward: String = wanted.iter().map(|f| shell(now(f), &f.claim)).collect();
    let back: String = wanted.iter().rev().map(|f| shell(&f.undo, &f.claim)).collect();
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

/// Lines of one form. When two claims set the same thing, the more urgent one, which comes first, has it.
fn lasting(wanted: &[&Finding], form: &Form) -> String {
    let mut seen: Vec<(String, String)> = Vec::new();
    let mut text = String::new();
    for finding in wanted {
        for step in persistent(finding).iter().filter(|s| s.kind == form.kind) {
            let name = match form.kind {
                StepKind::Cnf | StepKind::Sysctl => {
                    step.text.split('=').next().unwrap_or_default().trim().replace('-', "_")
                }
                _ => step.text.clone(),
            };
            match seen.iter().find(|(known, _)| *known == name) {
                None => {
                    let _ = write!(text, "# {}\n{}\n", finding.claim, step.text);
                    seen.push((name, finding.claim.clone()));
                }
                Some((_, first)) => {
                    let _ =
                        writeln!(text, "# {} asks for: {} (set above for {first})", finding.claim, step.text);
                }
            }
        }
    }
    text
}

/// What no file can do, and what can go wrong.
fn by_hand(wanted: &[&Finding], guide: &mut String) {
    for finding in wanted {
        let Some(remedy) = &finding.remedy else { continue };
        let _ = write!(guide, "\n## {}\n\n{}\n\nRisk: {}\n", finding.claim, finding.summary, remedy.risk);
        let words = remedy.now.iter().chain(&remedy.persistent);
        for step in words.filter(|s| matches!(s.kind, StepKind::Text | StepKind::Shell)) {
            let lasting_shell = step.kind == StepKind::Text || persistent(finding).contains(step);
            if lasting_shell {
                let _ = write!(guide, "\nBy hand:\n\n    {}\n", step.text.replace('\n', "\n    "));
            }
        }
    }
}

#[cfg(test)]
mod tests;
