//! Lines of crontabs that cron ends before their end: an unescaped `%` is the end of the command, and what follows it is its input
//! (crontab(5)).

use serde_json::{Value, json};

/// Why such a line fails.
const WHY: &str = "cron ends the command at the %, which no backslash precedes";

/// Lines of a crontab that matter (`matters`) and that fail for a `%`: file, line, why.
pub fn cut(path: &str, text: &str, matters: fn(&str) -> bool) -> Vec<Value> {
    let runs =
        |line: &str| line.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '*' || c == '@');
    let lines = text.lines().enumerate().filter(|(_, line)| runs(line) && matters(line) && is_cut(line));
    lines.map(|(place, _)| json!({"file": path, "line": place + 1, "why": WHY})).collect()
}

/// Whether a `%` ends the command within a substitution or within quotes, or at the format of `date`. The shell refuses it then, or
/// runs a part of it.
fn is_cut(line: &str) -> bool {
    let mut quote: Option<char> = None;
    let mut open = 0_usize;
    let mut ticks = false;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            // The date's format needs no quotes, as in `date +%F`.
            (_, '%') => {
                let of_date = line[..at].ends_with('+') && line[..at].contains("date");
                return quote.is_some() || open > 0 || ticks || of_date;
            }
            (_, '\\') => escaped = true,
            (Some(end), _) if c == end => quote = None,
            (Some('\''), _) => {}
            (_, '`') => ticks = !ticks,
            (_, '(') if line[..at].ends_with('$') => open += 1,
            (_, ')') => open = open.saturating_sub(1),
            (None, '\'' | '"') => quote = Some(c),
            // A comment of the shell.
            (None, '#') if line[..at].ends_with(' ') => return false,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::upkeep::makes::makes_backups;

    fn cut(path: &str, text: &str) -> Vec<Value> {
        super::cut(path, text, makes_backups)
    }

    #[test]
    fn lines_that_a_percent_sign_cuts_are_told_and_escaped_ones_are_not() {
        for line in [
            "0 3 * * * root mysqldump -A > /srv/shop-$(date +%F).sql",
            "0 3 * * * root mysqldump -A > /srv/shop-`date +%Y%m%d`.sql",
            "0 3 * * * root mysqldump -A > \"/srv/$(date '+%F').sql\"",
            "@daily root date +%F >> /var/log/x && mysqldump -A > /srv/x.sql",
            "0 3 * * * root mysqldump -A --result-file='/srv/x-%F.sql'",
        ] {
            assert_eq!(cut("/etc/cron.d/x", line).len(), 1, "{line}");
        }
        for line in [
            "0 3 * * * root mysqldump -A > /srv/shop-$(date +\\%F).sql",
            "0 3 * * * root mysqldump -A > /srv/shop-$(date '+\\%F').sql",
            "0 3 * * * root /usr/local/bin/db-backup.sh%input",
            "0 3 * * * root (cd /srv && mysqldump -A > x.sql) # it's 50% of all",
            "# 0 3 * * * root mysqldump -A > /srv/shop-$(date +%F).sql",
            "NAME=backup-$(date +%F)",
            "0 3 * * * root certbot renew --deploy-hook 'date +%F'",
        ] {
            assert!(cut("/etc/cron.d/x", line).is_empty(), "{line}");
        }
        let found =
            cut("/etc/crontab", "SHELL=/bin/sh\n0 3 * * * root mysqldump -A > /srv/$(date +%F).sql\n");
        assert_eq!((&found[0]["line"], &found[0]["file"]), (&json!(2), &json!("/etc/crontab")));
    }
}
