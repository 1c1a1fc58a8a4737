//! One line of an option file, as the servers parse it.

/// A line of an option file.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Empty,
    Group(String),
    BrokenGroup,
    BrokenInclude,
    Include(String),
    IncludeFolder(String),
    Option(String, Option<String>),
}

impl Line {
    pub fn of(line: &str) -> Self {
        let line = trimmed(line);
        if line.is_empty() || line.starts_with(['#', ';']) {
            return Self::Empty;
        }
        if let Some(rest) = line.strip_prefix('[') {
            // White space before the name belongs to the name; white space after it does not.
            let name = rest.split_once(']').map(|(name, _)| name.trim_end_matches(is_space).to_owned());
            return name.map_or(Self::BrokenGroup, Self::Group);
        }
        if let Some(rest) = line.strip_prefix('!') {
            let rest = rest.trim_start_matches(is_space);
            let (word, path) = rest.split_once(is_space).unwrap_or((rest, ""));
            return match (word, trimmed(path)) {
                ("include" | "includedir", "") => Self::BrokenInclude,
                ("include", path) => Self::Include(path.to_owned()),
                ("includedir", path) => Self::IncludeFolder(path.to_owned()),
                _ => Self::Empty,
            };
        }
        let line = without_comment(line).trim_end_matches(is_space);
        match line.split_once('=') {
            Some((name, value)) => {
                Self::Option(name.trim_end_matches(is_space).to_owned(), Some(plain(trimmed(value))))
            }
            None => Self::Option(line.to_owned(), None),
        }
    }
}

/// Whether the servers' C library counts a character as white space (isspace(3) in the C locale).
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// The line up to a `#` outside quotes; the `#` needs no white space before it.
fn without_comment(line: &str) -> &str {
    let (mut open, mut escaped) = (None, false);
    for (at, c) in line.char_indices() {
        match open {
            Some(quote) if c == quote && !escaped => open = None,
            None if c == '#' => return &line[..at],
            None if matches!(c, '\'' | '"') && !escaped => open = Some(c),
            _ => {}
        }
        escaped = open.is_some() && c == '\\' && !escaped;
    }
    line
}

/// A value without its quotes and with its escapes decoded.
fn plain(value: &str) -> String {
    let bare = ['\'', '"'].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q)).unwrap_or(value);
    let mut undone = String::with_capacity(bare.len());
    let mut chars = bare.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            undone.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => undone.push('\n'),
            Some('t') => undone.push('\t'),
            Some('r') => undone.push('\r'),
            Some('b') => undone.push('\u{8}'),
            Some('s') => undone.push(' '),
            Some(c @ ('\\' | '"' | '\'')) => undone.push(c),
            // An unknown escape is kept as it is.
            Some(c) => undone.extend(['\\', c]),
            None => undone.push('\\'),
        }
    }
    undone
}
