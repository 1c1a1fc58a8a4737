//! Strings that came from a server or a user, made harmless for the place where they are shown.
//!
//! Everything foreign goes through one of these functions exactly once, where it is put into text.

use serde_json::Value;

/// Longest foreign text that is shown; a message of megabytes would hide the report.
const LONGEST: usize = 2_000;

/// For HTML and SVG, in text and in quoted attributes alike.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON for a `<script type="application/json">` block: nothing in it can end the block or a line of script.
pub fn script_json(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// For a terminal: no escape sequence, no line break.
pub fn terminal(text: &str) -> String {
    one_line(&visible(text))
}

/// For Markdown, in paragraphs and in table cells.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in one_line(&visible(text)).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Between letters an underscore is only an underscore.
            '_' if out.ends_with(char::is_alphanumeric) => out.push(c),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            // A bare address would be turned into a link.
            '/' if out.ends_with(":/") => out.push_str("&#47;"),
            '.' if out.ends_with("www") => out.push_str("&#46;"),
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    out
}

/// A block of code in Markdown, by indentation: nothing inside it has a meaning.
pub fn markdown_code(text: &str) -> String {
    visible(text).lines().map(|line| format!("    {line}\n")).collect()
}

/// One word of a shell command line.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A command line that a shell reads back as `argv`.
pub fn shell(argv: &[String]) -> String {
    argv.iter().map(|w| shell_word(w)).collect::<Vec<_>>().join(" ")
}

/// Control and direction characters as visible escapes, and an end after [`LONGEST`] characters.
///
/// Escape sequences could rewrite a terminal; direction overrides could make a text read as another one.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (n, c) in text.chars().enumerate() {
        if n == LONGEST {
            out.push_str(&format!("… ({} characters in all)", text.chars().count()));
            break;
        }
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_direction(c) => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}' | '\u{feff}')
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_keeps_no_character_that_can_open_a_tag_or_close_an_attribute() {
        assert_eq!(
            html(r#"<script>"a"&'b'</script>"#),
            "&lt;script&gt;&quot;a&quot;&amp;&#39;b&#39;&lt;/script&gt;"
        );
    }

    #[test]
    fn json_in_a_script_block_cannot_end_it() {
        let json = script_json(&Value::from("</script><!--\u{2028}&"));
        assert_eq!(json, r#""\u003c/script\u003e\u003c!--\u2028\u0026""#);
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), "</script><!--\u{2028}&");
    }

    #[test]
    fn escape_sequences_and_direction_overrides_become_visible() {
        assert_eq!(terminal("a\u{1b}[31mb\u{9b}c\r\nd\u{202e}e"), r"a\u{1b}[31mb\u{9b}c\u{d} d\u{202e}e");
        assert_eq!(html("\u{0}\u{2066}"), r"\u{0}\u{2066}");
    }

    #[test]
    fn markdown_makes_no_table_cell_link_or_tag() {
        assert_eq!(markdown("a|b <i> [x](http://y)\n# z"), r"a\|b &lt;i&gt; \[x\]\(http:/&#47;y\) \# z");
    }

    #[test]
    fn a_very_long_text_is_cut_and_says_so() {
        let cut = html(&"x".repeat(5_000));
        assert!(cut.starts_with(&"x".repeat(2_000)) && cut.ends_with("x… (5000 characters in all)"), "{cut}");
    }

    #[test]
    fn a_command_line_survives_the_shell() {
        let argv = ["mydyno", "bench", "sql", "--sql", "SELECT 'a'; $(x)", ""].map(str::to_owned);
        assert_eq!(shell(&argv), r"mydyno bench sql --sql 'SELECT '\''a'\''; $(x)' ''");
    }
}
