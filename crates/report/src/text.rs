//! Escaping of strings from servers and users for each output format.
//!
//! Every foreign string passes through one of these functions exactly once, where it is inserted into output.

use maud::Render;
use mydyno_model::text::shown;
pub use mydyno_model::text::{line as terminal, markdown, markdown_code};
use serde_json::Value;

/// Foreign text in HTML and SVG, in text and in attributes: characters that steer a terminal or the direction of text become
/// visible, long texts are cut, and all is escaped.
#[derive(Debug, Clone, Copy)]
pub struct Foreign<'a>(&'a str);

/// Foreign text for [`maud::html`].
pub fn html(text: &(impl AsRef<str> + ?Sized)) -> Foreign<'_> {
    Foreign(text.as_ref())
}

impl Render for Foreign<'_> {
    fn render_to(&self, out: &mut String) {
        shown(self.0).render_to(out);
    }
}

/// JSON for a `<script type="application/json">` block: escaped so that it can end neither the block nor a line of script.
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

#[cfg(test)]
mod tests {
    use maud::{PreEscaped, html as markup};

    use super::*;

    fn html(text: &str) -> String {
        let PreEscaped(text) = markup! { (super::html(text)) };
        text
    }

    #[test]
    fn html_keeps_no_character_that_can_open_a_tag_or_close_an_attribute() {
        assert_eq!(html(r#"<script>"a"&b</script>"#), "&lt;script&gt;&quot;a&quot;&amp;b&lt;/script&gt;");
        let PreEscaped(attribute) = markup! { p title=(super::html(r#"'" onclick="x"#)) {} };
        assert_eq!(attribute, r#"<p title="'&quot; onclick=&quot;x"></p>"#);
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
