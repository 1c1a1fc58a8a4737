//! The host's settings as a tuned profile, for hosts on which tuned would otherwise revert them.

use std::fmt::Write as _;

use super::FixFile;

/// Path of the profile `mydyno`, relative to tuned's folder.
pub const PATH: &str = "tuned/mydyno/tuned.conf";

/// Translates a line of another file to the profile's syntax, if possible.
type Translate = fn(&str) -> Option<String>;

/// Files whose settings the profile contains, with the translation of their lines.
const HELD: [(&str, Section, Translate); 4] = [
    ("sysctl.d/60-mydyno.conf", Section::Sysctl, sysctl),
    ("udev/60-mydyno.rules", Section::Sysfs, udev),
    ("tmpfiles.d/mydyno.conf", Section::Sysfs, tmpfiles),
    ("kernel-parameters.txt", Section::Bootloader, kernel),
];

/// Sections of a profile, one for each tuned plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Sysctl,
    Sysfs,
    Bootloader,
}

/// The profile with the contents of the host's other files; `None` where they contain nothing.
pub fn profile(files: &[FixFile]) -> Option<FixFile> {
    let mut text = String::from(
        "# Written by `mydyno audit --fix`. Each line names the claim that asks for it.\n[main]\nsummary=Remedies of mydyno audit\n# The profile that is active (`tuned-adm active`), so that what it sets stays set:\n# include=NAME\n",
    );
    let mut any = false;
    for (section, name) in
        [(Section::Sysctl, "sysctl"), (Section::Sysfs, "sysfs"), (Section::Bootloader, "bootloader")]
    {
        let held = HELD.iter().filter(|(_, of, _)| *of == section);
        let lines: String = held
            .filter_map(|(path, _, write)| Some((files.iter().find(|f| f.path == *path)?, write)))
            .map(|(file, write)| translated(&file.text, *write))
            .collect();
        if !lines.is_empty() {
            any = true;
            let _ = write!(text, "\n[{name}]\n{lines}");
        }
    }
    any.then_some(FixFile { path: PATH, text })
}

/// Lines of a file in the profile's syntax; comments are kept, except the first, which describes the file.
fn translated(text: &str, write: Translate) -> String {
    let mut out = String::new();
    for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
        let _ = match (line.starts_with('#'), write(line)) {
            (true, _) => writeln!(out, "{line}"),
            (false, Some(written)) => writeln!(out, "{written}"),
            (false, None) => writeln!(out, "# tuned has no words for: {line}"),
        };
    }
    out
}

fn sysctl(line: &str) -> Option<String> {
    let (name, value) = line.split_once('=')?;
    Some(format!("{}={}", name.trim(), value.trim()))
}

/// `KERNEL=="sda", ATTR{queue/scheduler}="none"` sets a file of the disk.
fn udev(line: &str) -> Option<String> {
    let between = |from: &str, to: &str| Some(line.split_once(from)?.1.split_once(to)?.0);
    let (disk, setting) = (between("KERNEL==\"", "\"")?, between("ATTR{", "}=\"")?);
    let value = line.split_once("}=\"")?.1.strip_suffix('"')?;
    let plain = |text: &str| !text.is_empty() && !text.contains(['*', '?', '[', '|', '"', '#']);
    (plain(disk) && plain(setting) && plain(value)).then(|| format!("/sys/block/{disk}/{setting}={value}"))
}

/// `w /sys/… - - - - VALUE` writes a file.
fn tmpfiles(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let (kind, path) = (words.next()?, words.next()?);
    let value = words.skip(4).collect::<Vec<_>>().join(" ");
    (kind == "w" && path.starts_with("/sys/") && !value.is_empty()).then(|| format!("{path}={value}"))
}

/// A unique name for each parameter: of two lines with one name tuned keeps the last.
fn kernel(line: &str) -> Option<String> {
    let name = line.split('=').next()?.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    Some(format!("cmdline_mydyno_{name}={line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &'static str, lines: &str) -> FixFile {
        FixFile { path, text: format!("# Written by\n{lines}") }
    }

    #[test]
    fn settings_of_the_host_are_said_in_the_words_of_tuned() {
        let files = [
            file("sysctl.d/60-mydyno.conf", "# swappiness\nvm.swappiness = 1\n"),
            file(
                "udev/60-mydyno.rules",
                "# io-scheduler\nACTION==\"add|change\", KERNEL==\"sda\", ATTR{queue/scheduler}=\"none\"\n",
            ),
            file(
                "tmpfiles.d/mydyno.conf",
                "# thp\nw /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n",
            ),
            file("kernel-parameters.txt", "# nvme\nnvme_core.io_timeout=4294967295\n"),
            file("option-file/zz-mydyno.cnf", "[mysqld]\nsync_binlog = 1\n"),
        ];
        let text = profile(&files).unwrap().text;
        for part in [
            "[sysctl]\n# swappiness\nvm.swappiness=1\n",
            "[sysfs]\n# io-scheduler\n/sys/block/sda/queue/scheduler=none\n# thp\n/sys/kernel/mm/transparent_hugepage/enabled=madvise\n",
            "[bootloader]\n# nvme\ncmdline_mydyno_nvme_core_io_timeout=nvme_core.io_timeout=4294967295\n",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("sync_binlog"));
        assert_eq!(profile(&files[4..]), None);
    }

    #[test]
    fn what_tuned_has_no_words_for_stays_a_comment() {
        let rule = "ACTION==\"add\", KERNEL==\"sd*\", RUN+=\"/bin/true\"";
        let text = profile(&[file("udev/60-mydyno.rules", rule)]).unwrap().text;
        assert!(text.contains("# tuned has no words for: ACTION"), "{text}");
        assert_eq!(tmpfiles("d /run/x 0755 - - -"), None);
    }
}
