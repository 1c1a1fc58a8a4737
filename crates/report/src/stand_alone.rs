//! The frame of a page that stands alone: no script, nothing loaded from elsewhere.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::text::html as esc;

/// A whole page. `style` is a constant of the program, and is not escaped.
pub(crate) fn page(title: &str, style: &'static str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (esc(title)) }
                style { (PreEscaped(style)) }
            }
            "\n"
            body {
                "\n"
                (body)
            }
        }
        "\n"
    };
    page.into_string()
}
