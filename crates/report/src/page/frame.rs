//! The document around the body (policy, style and script), and its division into sections.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::text::html as esc;

const STYLE: &str = include_str!("../../../../web/report/report.css");
const SCRIPT: &str = include_str!("../../../../web/report/report.js");

/// A part of the page with a heading.
pub struct Section {
    /// Its anchor.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its content; a section without any is left out.
    pub html: Markup,
}

/// The HTML file. Its policy forbids every request, and every style and script except the two whose hashes it lists.
pub fn document(title: &str, body: &Markup, data: &Markup) -> String {
    document_of(title, STYLE, SCRIPT, body, data)
}

/// The same with a style and a script of its own: constants of the program.
pub fn document_of(title: &str, style: &str, script: &str, body: &Markup, data: &Markup) -> String {
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        hash(style),
        hash(script)
    );
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            "\n"
            head {
                "\n"
                meta charset="utf-8"; "\n"
                meta http-equiv="Content-Security-Policy" content=(policy); "\n"
                meta name="viewport" content="width=device-width, initial-scale=1"; "\n"
                meta name="color-scheme" content="light dark"; "\n"
                meta name="referrer" content="no-referrer"; "\n"
                title { (esc(title)) } "\n"
                // Constants of the program, with the bytes that the policy's hashes are of.
                style { (PreEscaped(style)) } "\n"
            }
            "\n"
            body { "\n" (body) (data) script { (PreEscaped(script)) } "\n" }
        }
        "\n"
    };
    page.into_string()
}

/// The sections that have content, after a list of links to them.
pub fn in_sections(sections: &[Section]) -> Markup {
    let filled = || sections.iter().filter(|section| !section.html.0.is_empty());
    html! {
        nav aria-label="Sections" {
            ul { @for Section { id, title, .. } in filled() { li { a href={ "#" (id) } { (title) } } } }
        }
        "\n"
        main {
            "\n"
            @for Section { id, title, html } in filled() {
                section id=(id) aria-labelledby={ "h-" (id) } {
                    "\n"
                    h2 id={ "h-" (id) } { (title) } "\n"
                    (html)
                }
                "\n"
            }
        }
        "\n"
    }
}

fn hash(source: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(source.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, STYLE};

    #[test]
    fn style_and_script_cannot_end_their_element() {
        for source in [STYLE, SCRIPT] {
            assert!(!source.contains("</") && !source.contains("<!--"));
        }
    }

    #[test]
    fn style_and_script_name_no_address() {
        for source in [STYLE, SCRIPT] {
            let without_svg = source.replace("http://www.w3.org/2000/svg", "");
            for word in [
                "http:",
                "https:",
                "url(",
                "@import",
                "fetch(",
                "XMLHttpRequest",
                "WebSocket",
                "innerHTML",
                "eval(",
            ] {
                assert!(!without_svg.contains(word), "{word}");
            }
        }
    }
}
