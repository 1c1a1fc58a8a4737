//! Commands of shell scripts and of lines of cron, as far as they are looked at: words without their quotes, variables that the script
//! sets to plain text, and loops over words.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

/// Mark between the words that a variable of a loop stands for.
pub const OR: char = '\u{1f}';

/// Texts within texts that are looked into, as in `sh -c "…"`.
const DEEPEST: usize = 3;

/// Words of all commands of a script at most.
const MOST_COMMANDS: usize = 5000;

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its words; those that set a variable for it alone stand first.
    pub words: Vec<String>,
    /// Whether a pipe follows.
    pub piped: bool,
}

impl Command {
    /// Name and arguments of the first of `programs` that this command calls; not where it only speaks of it, as `echo` does. A
    /// program's name may begin with one of them.
    pub fn call<'a>(&'a self, programs: &[&str]) -> Option<(&'a str, &'a [String])> {
        const SPEAK: [&str; 30] = [
            "echo", "printf", "logger", "log", "which", "command", "type", "hash", "test", "[", "[[",
            "pgrep", "pkill", "killall", "ps", "grep", "egrep", "man", "mail", "mailx", "apt", "apt-get",
            "yum", "case", "rm", "cp", "ln", "ls", "chmod", "chown",
        ];
        for (place, word) in self.words.iter().enumerate() {
            let name = word.rsplit('/').next().unwrap_or(word);
            if programs.contains(&name) {
                return Some((name, &self.words[place + 1..]));
            }
            if SPEAK.contains(&name)
                && is_program(word, place.checked_sub(1).map(|before| &*self.words[before]))
            {
                return None;
            }
        }
        None
    }

    /// Arguments before the first redirection.
    pub fn arguments(words: &[String]) -> &[String] {
        let redirects = |word: &String| {
            let bare = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
            bare.starts_with(['>', '<'])
        };
        &words[..words.iter().position(redirects).unwrap_or(words.len())]
    }
}

/// Whether a word stands where a program may: a path in a folder of programs or none, and not the name of what a wrapper is to work on,
/// as a container, a host or the file of a lock.
fn is_program(word: &str, before: Option<&str>) -> bool {
    const OF_WRAPPERS: [&str; 8] = ["exec", "ssh", "flock", "run", "-u", "-U", "-w", "-h"];
    let folder = word.rsplit_once('/').map(|(folder, _)| folder);
    folder.is_none_or(|folder| folder.ends_with("bin"))
        && !before.is_some_and(|word| OF_WRAPPERS.contains(&word))
}

/// Longest word that variables make, and the most that they add to a script: one may double a variable again and again.
const LONGEST_WORD: usize = 4096;
const MOST_ADDED: usize = 4 << 20;

/// The commands of a script, with the variables that it set.
#[derive(Debug, Default)]
pub struct Script {
    /// In order.
    pub commands: Vec<Command>,
    /// Variables that were set to plain text, and those of loops with their words joined by [`OR`].
    pub variables: BTreeMap<String, String>,
    /// Bytes that variables added.
    added: Cell<usize>,
}

impl Script {
    /// Reads a text.
    pub fn of(text: &str) -> Self {
        let mut script = Self::default();
        script.add(&without_documents(&text.replace("\\\n", " ")), 0);
        script
    }

    fn add(&mut self, text: &str, depth: usize) {
        let mut rest: Vec<char> = text.chars().collect();
        rest.push('\n');
        let mut at = 0;
        while at < rest.len() && self.commands.len() < MOST_COMMANDS {
            let (raw, end, next) = command(&rest, at);
            at = next;
            self.take(&raw, end == '|', depth);
        }
    }

    /// Keeps a command, or the variables that it sets.
    fn take(&mut self, raw: &[Raw], piped: bool, depth: usize) {
        for inner in raw.iter().flat_map(|word| &word.inner).filter(|_| depth < DEEPEST) {
            self.add(inner, depth + 1);
        }
        let skipped = ["export", "local", "readonly", "declare"];
        let plain: Vec<&Raw> = raw.iter().skip_while(|word| skipped.contains(&word.text.as_str())).collect();
        if !plain.is_empty() && plain.iter().all(|word| assignment(&word.text).is_some()) {
            for (name, value) in plain.iter().filter_map(|word| assignment(&word.text)) {
                let value = self.expanded(value);
                self.variables.insert(name.to_owned(), value);
            }
            return;
        }
        let mut words: Vec<String> = Vec::new();
        for word in raw {
            let text = self.expanded(&word.text);
            // An array gives a word for each of its items, within quotes too.
            let whole = word.quoted && !word.text.contains("[@]");
            match whole || !word.text.contains('$') {
                true => words.push(text),
                false => words.extend(text.split_whitespace().map(str::to_owned)),
            }
        }
        let from = words.iter().position(|word| word == "for").filter(|_| words.len() > 3);
        if let Some([name, word, items @ ..]) = from.map(|from| &words[from + 1..])
            && word == "in"
        {
            let items = items.join(" ").split_whitespace().collect::<Vec<_>>().join(&OR.to_string());
            self.variables.insert(name.clone(), items);
            return;
        }
        let runs = |word: &String| {
            let name = word.rsplit('/').next().unwrap_or(word);
            ["-c", "-lc", "eval", "ssh"].contains(&name)
        };
        if words.iter().any(runs) && depth < DEEPEST {
            for text in words.iter().filter(|word| word.contains(' ')).cloned().collect::<Vec<_>>() {
                self.add(&text, depth + 1);
            }
        }
        if !words.is_empty() {
            self.commands.push(Command { words, piped });
        }
    }

    /// A word with its variables replaced, as far as they are known; the words of a loop only where the variable is the whole word.
    fn expanded(&self, word: &str) -> String {
        let mut text = String::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once('$') {
            text.push_str(before);
            let (name, left) = variable(after);
            let value = self.variables.get(name).filter(|_| !name.is_empty());
            let fits = |value: &&String| {
                text.len() + value.len() <= LONGEST_WORD && self.added.get() + value.len() <= MOST_ADDED
            };
            match value
                .filter(|value| !value.contains(OR) || (before.is_empty() && left.is_empty()))
                .filter(fits)
            {
                Some(value) => {
                    self.added.set(self.added.get() + value.len());
                    text.push_str(value);
                }
                None => {
                    text.push('$');
                    text.push_str(&after[..after.len() - left.len()]);
                }
            }
            rest = left;
        }
        text.push_str(rest);
        text
    }
}

/// A script without the texts that it gives to programs (`<<END` up to a line `END`), unless a shell reads them.
fn without_documents(text: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let all: Vec<&str> = text.lines().collect();
    // Where each text stands last: a script of many beginnings without an end is read once.
    let last: HashMap<&str, usize> =
        all.iter().enumerate().map(|(place, line)| (line.trim(), place)).collect();
    let mut place = 0;
    while let Some(line) = all.get(place).copied() {
        kept.push(line);
        place += 1;
        let Some((before, after)) = line.split_once("<<").filter(|(_, after)| !after.starts_with('<')) else {
            continue;
        };
        let shell = before.split_whitespace().any(|word| {
            ["sh", "bash", "dash", "ssh", "su", "sudo"].contains(&word.rsplit('/').next().unwrap_or(word))
        });
        let word = after.trim_start_matches('-').trim_start();
        let end = word.split([' ', ';', '|', '>', ')']).next().unwrap_or("").trim_matches(['\'', '"', '\\']);
        let is_name = end.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !end.is_empty();
        // Without its end it is something else, as a number that is shifted.
        if is_name && !shell && last.get(end).is_some_and(|last| *last >= place) {
            place += all[place..].iter().take_while(|line| line.trim() != end).count() + 1;
        }
    }
    kept.join("\n")
}

/// The name of a variable behind `$`, and what follows it.
fn variable(text: &str) -> (&str, &str) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.strip_prefix('{') {
        Some(inside) => match inside.split_once('}') {
            Some((name, left)) => {
                (name.strip_suffix("[@]").or(name.strip_suffix("[*]")).unwrap_or(name), left)
            }
            None => ("", text),
        },
        None => text.split_at(text.find(|c| !is_name(c)).unwrap_or(text.len())),
    }
}

/// Name and value of a word that sets a variable.
pub fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some((name, value))
}

/// A word as written, without its quotes.
#[derive(Debug, Default)]
struct Raw {
    text: String,
    quoted: bool,
    /// Commands within it, as in `$(…)`.
    inner: Vec<String>,
}

/// The words of the command that begins at `at`, the character that ends it, and where the next one begins.
fn command(text: &[char], mut at: usize) -> (Vec<Raw>, char, usize) {
    let mut words: Vec<Raw> = Vec::new();
    let mut word: Option<Raw> = None;
    let mut quote: Option<char> = None;
    while let Some(&c) = text.get(at) {
        let following = text.get(at + 1).copied().unwrap_or('\n');
        let before = at.checked_sub(1).and_then(|before| text.get(before)).copied().unwrap_or(' ');
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None | Some('"'), '$') if following == '(' => {
                let (inner, end) = nested(text, at + 2);
                let word = word.get_or_insert_default();
                word.text.push_str("$()");
                word.inner.push(inner);
                at = end;
            }
            (None | Some('"'), '`') => {
                let end = (at + 1..text.len()).find(|place| text[*place] == '`').unwrap_or(text.len() - 1);
                let word = word.get_or_insert_default();
                word.text.push_str("$()");
                word.inner.push(text[at + 1..end].iter().collect());
                at = end;
            }
            (Some(_), _) => word.get_or_insert_default().text.push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default().quoted = true;
            }
            (None, '\\') => {
                word.get_or_insert_default().text.push(following);
                at += 1;
            }
            (None, '#') if word.is_none() => {
                at = (at..text.len()).find(|place| text[*place] == '\n').unwrap_or(text.len() - 1);
                continue;
            }
            // The list of an array.
            (None, '(') if word.as_ref().is_some_and(|word| word.text.ends_with('=')) => {
                let (inner, end) = nested(text, at + 1);
                word.get_or_insert_default().text.push_str(&inner.replace(['"', '\'', '\n'], " "));
                at = end;
            }
            (None, '&') if following == '>' || before == '>' => word.get_or_insert_default().text.push(c),
            (None, '|') if following == '|' => return (finished(words, word), ';', at + 2),
            (None, '\n' | ';' | '&' | '|' | '(' | ')') => return (finished(words, word), c, at + 1),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().text.push(c),
        }
        at += 1;
    }
    (finished(words, word), '\n', at)
}

fn finished(mut words: Vec<Raw>, last: Option<Raw>) -> Vec<Raw> {
    words.extend(last);
    words
}

/// The text up to the bracket that closes, and where that stands.
fn nested(text: &[char], from: usize) -> (String, usize) {
    let mut depth = 1;
    for (place, c) in text.iter().enumerate().skip(from) {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 {
            return (text[from..place].iter().collect(), place);
        }
    }
    (String::new(), text.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        Script::of(text).commands.into_iter().map(|command| command.words).collect()
    }

    #[test]
    fn commands_are_split_at_the_shell_s_signs_and_not_within_quotes() {
        assert_eq!(
            words("cd /x && mysqldump 'a b' \"c|d\" 2>&1 | gzip > /y # c; e\nsleep 1&"),
            [
                vec!["cd", "/x"],
                vec![],
                vec!["mysqldump", "a b", "c|d", "2>&1"],
                vec!["gzip", ">", "/y"],
                vec!["sleep", "1"]
            ]
            .into_iter()
            .filter(|words: &Vec<&str>| !words.is_empty())
            .collect::<Vec<_>>()
        );
        let piped: Vec<bool> = Script::of("a | b; c || d").commands.iter().map(|c| c.piped).collect();
        assert_eq!(piped, [true, false, false, false]);
    }

    #[test]
    fn variables_that_are_plain_text_and_loops_are_followed() {
        let text = "DIR=/srv/dumps\nFILE=\"$DIR/x-$(date +%F).sql\"\nDBS=(shop cms)\nfor db in \"${DBS[@]}\" stats; do\n mysqldump \"$db\" > ${DIR}/$db.sql\ndone\n";
        let script = Script::of(text);
        assert_eq!(script.variables["FILE"], "/srv/dumps/x-$().sql");
        let call = script.commands.iter().find_map(|command| command.call(&["mysqldump"])).unwrap();
        let items: Vec<&str> = call.1[0].split([OR, ' ']).filter(|w| !w.is_empty()).collect();
        assert_eq!(items, ["shop", "cms", "stats"]);
        assert_eq!(call.1[1..], [">", "/srv/dumps/$db.sql"]);
        assert_eq!(Command::arguments(call.1).len(), 1);
    }

    #[test]
    fn commands_within_texts_are_found_and_words_about_a_program_are_none() {
        let found = |text: &str| Script::of(text).commands.iter().any(|c| c.call(&["mysqldump"]).is_some());
        for text in [
            "0 3 * * * root sh -c \"mysqldump shop | gzip > /x\"",
            "OUT=$(mysqldump shop)",
            "if ! /usr/bin/mysqldump shop; then",
            "D=/usr/bin/mysqldump\n$D shop",
            "docker exec test mysqldump -A",
            "flock /run/lock/mail mysqldump -A",
            "ssh mail mysqldump -A",
            "cat <<END > /x\nit doesn't matter\nEND\nmysqldump shop",
            "ssh db2 <<END\nmysqldump shop\nEND",
        ] {
            assert!(found(text), "{text}");
        }
        for text in [
            "echo mysqldump failed",
            "D=/usr/bin/mysqldump",
            "[ -x /usr/bin/mysqldump ]",
            "# mysqldump x",
            "rm -f /usr/bin/mysqldump",
            "cat <<END\nmysqldump shop\nEND",
        ] {
            assert!(!found(text), "{text}");
        }
        let doubled = format!("A=xxxxxxxx\n{}echo $A $A", "A=$A$A\n".repeat(60));
        let script = Script::of(&format!("{doubled}{}", " $A".repeat(20_000)));
        let bytes: usize = script.commands.iter().flat_map(|c| &c.words).map(String::len).sum();
        assert!(bytes < MOST_ADDED + (1 << 20), "{bytes}");
        assert!(Script::of("a $(b").commands.len() <= 2 && Script::of("`").commands.len() <= 1);
    }
}
