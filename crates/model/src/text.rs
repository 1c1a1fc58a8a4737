//! Neutralises text from outside (a server, a file, a command line) before it is displayed.
//!
//! Escape sequences can rewrite a terminal, and bidirectional control characters can disguise a text as another one. Every
//! output (terminal, Markdown, HTML, error messages) passes text from outside through one function of this file; JSON, which is data, passes
//! through [`json`].

use std::borrow::Cow;

/// Longest text from outside that is displayed, in characters: a message of megabytes would hide everything else.
pub const LONGEST_SHOWN: usize = 2_000;

/// Longest server error message that is kept, in bytes; servers send up to 512.
pub const LONGEST_MESSAGE_BYTES: usize = 4 << 10;

/// Whether a character controls the display instead of being displayed: C0 and C1 controls (including line feeds and tabs),
/// bidirectional and zero-width characters, line and paragraph separators, annotation marks and tags.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Replaces each character that [`steers`] with a visible escape, as in `\u{1b}`; line feeds and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let stays = |c: char| matches!(c, '\n' | '\t') || !steers(c);
    if text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if stays(c) {
            out.push(c);
        } else {
            out.push_str(&format!("\\u{{{:x}}}", c as u32));
        }
    }
    Cow::Owned(out)
}

/// Escapes each character of a JSON text that [`steers`] and that its writer leaves as it is. Outside of texts JSON has
/// only line feeds of them, so the document stays the same.
pub fn json(document: &str) -> Cow<'_, str> {
    let stays = |c: char| c == '\n' || !steers(c);
    if document.chars().all(stays) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len() + 64);
    for c in document.chars() {
        if stays(c) {
            out.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    Cow::Owned(out)
}

/// [`visible`], truncated after [`LONGEST_SHOWN`] characters with a note that gives the full length.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        None => visible(text).into_owned(),
        Some((end, _)) => {
            format!("{}… ({} characters in all)", visible(&text[..end]), text.chars().count())
        }
    }
}

/// [`shown`] on one line: each run of white space becomes one space.
pub fn line(text: &str) -> String {
    shown(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A server's bytes as text: invalid UTF-8 is replaced, and the rest is made [`visible`].
pub fn of_bytes(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match visible(&text) {
        Cow::Borrowed(_) => text.into_owned(),
        Cow::Owned(escaped) => escaped,
    }
}

/// A server's message: [`of_bytes`] on one line, so that it cannot add lines that look like ours, truncated after
/// [`LONGEST_MESSAGE_BYTES`].
pub fn message(bytes: &[u8]) -> String {
    let on_one_line = |bytes: &[u8]| of_bytes(bytes).replace(['\n', '\t'], " ");
    match bytes.get(..LONGEST_MESSAGE_BYTES) {
        Some(head) if bytes.len() > LONGEST_MESSAGE_BYTES => format!("{} … cut", on_one_line(head)),
        _ => on_one_line(bytes),
    }
}

/// Text for Markdown paragraphs and table cells: [`line`], with every character that begins markup, a tag or a link escaped.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Between letters an underscore has no meaning in Markdown.
            '_' if out.ends_with(char::is_alphanumeric) => out.push(c),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            // Markdown renderers turn a bare address into a link.
            '/' if out.ends_with(":/") => out.push_str("&#47;"),
            '.' if out.ends_with("www") => out.push_str("&#46;"),
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    out
}

/// Prose with code spans for Markdown: [`line`], with what could open a tag, a link or a picture outside code spans escaped.
///
/// A span stands between two single backticks, as in CommonMark 0.31, section 6.1. Other backticks are escaped: a text of
/// others could pair them so that a renderer sees a tag where this function sees code.
pub fn markdown_prose(text: &str) -> String {
    let line = line(text);
    let mut out = String::with_capacity(line.len() + 16);
    let mut rest = &*line;
    while let Some(c) = rest.chars().next() {
        let run = rest.len() - rest.trim_start_matches('`').len();
        if let Some(length) = (run == 1).then(|| code_span(rest)).flatten() {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '`' => (0..run).for_each(|_| out.push_str("\\`")),
            '\\' | '[' | ']' => out.extend(['\\', c]),
            c => out.push(c),
        }
        rest = &rest[run.max(c.len_utf8())..];
    }
    out
}

/// The length of the code span that a text begins with by one backtick; it ends at the next backtick that stands alone.
fn code_span(text: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text[at..].find('`')?;
        let run = text[at..].len() - text[at..].trim_start_matches('`').len();
        at += run;
        if run == 1 {
            return Some(at);
        }
    }
}

/// A Markdown code block, made by indentation: nothing inside it is interpreted.
pub fn markdown_code(text: &str) -> String {
    shown(text).lines().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn json_texts_have_no_character_that_steers_and_the_same_value() {
        let hostile = "a\u{202e}b\u{9b}\u{7f}\u{e0041}\n";
        let written = serde_json::to_string_pretty(&[hostile]).unwrap();
        let escaped = json(&written);
        assert!(!escaped.chars().any(|c| c != '\n' && steers(c)), "{escaped}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&escaped).unwrap(), [hostile]);
        assert!(matches!(json("{\n}"), Cow::Borrowed(_)));
    }

    #[test]
    fn escape_sequences_and_characters_of_direction_become_visible() {
        assert_eq!(line("a\u{1b}[31mb\u{9b}c\r\nd\u{202e}e"), r"a\u{1b}[31mb\u{9b}c\u{d} d\u{202e}e");
        assert_eq!(shown("\u{0}\u{2066}\u{2028}\u{e0041}"), r"\u{0}\u{2066}\u{2028}\u{e0041}");
        assert_eq!(of_bytes(b"\xed\xa0\x80\xffx\x1b"), format!("{0}{0}{0}{0}x\\u{{1b}}", '\u{fffd}'));
        assert!(matches!(visible("grün\n\t☃"), Cow::Borrowed(_)));
    }

    #[test]
    fn markdown_makes_no_table_cell_link_or_tag() {
        assert_eq!(markdown("a|b <i> [x](http://y)\n# z"), r"a\|b &lt;i&gt; \[x\]\(http:/&#47;y\) \# z");
        assert_eq!(markdown_prose("run `a < b` <script>\n# x"), "run `a < b` &lt;script&gt; # x");
        assert_eq!(markdown_prose("an open ` <script>"), r"an open \` &lt;script&gt;");
    }

    #[test]
    fn backticks_of_others_make_no_tag_of_what_looks_like_code() {
        // By CommonMark a run of three backticks, or an escaped one, opens no span that a single one ends.
        assert_eq!(markdown_prose("```<script>`"), r"\`\`\`&lt;script&gt;\`");
        assert_eq!(markdown_prose(r"\`<script>`"), r"\\`<script>`");
        assert_eq!(markdown_prose("`a``<b>` <i>"), "`a``<b>` &lt;i&gt;");
        assert_eq!(markdown_prose("``<i>``"), r"\`\`&lt;i&gt;\`\`");
        assert_eq!(markdown_prose("![x](http://y) é"), r"!\[x\](http://y) é");
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let cut = shown(&"x".repeat(5_000));
        assert!(cut.starts_with(&"x".repeat(2_000)) && cut.ends_with("x… (5000 characters in all)"), "{cut}");
        let cut = message(&vec![b'x'; 31 << 20]);
        assert!(cut.ends_with("x … cut") && cut.len() < 5_000, "{}", cut.len());
        assert_eq!(message(&[b'x'; 4096]).len(), 4096);
    }

    proptest! {
        #[test]
        fn nothing_that_steers_passes(text in any::<String>()) {
            for c in visible(&text).chars() {
                prop_assert!(!steers(c) || matches!(c, '\n' | '\t'));
            }
            for one in [line(&text), markdown(&text), markdown_prose(&text)] {
                prop_assert!(!one.chars().any(steers), "{one:?}");
            }
        }
    }
}
