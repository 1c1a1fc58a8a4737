//! The document around the body: policy, style and script.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::text::html as esc;

const STYLE: &str = include_str!("../../../../web/report/report.css");
const SCRIPT: &str = include_str!("../../../../web/report/report.js");

/// The HTML file. Its policy forbids every request, and every style and script except the two whose hashes it lists.
pub fn document(title: &str, body: &str, data: &str) -> String {
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}{data}<script>{SCRIPT}</script>\n</body>\n</html>\n",
        esc(title)
    )
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
