//! A hostile server, user or file name cannot do anything with the report but be read.

use mydyno_model::Document;
use mydyno_model::finding::Findings;
use mydyno_report::{findings, html, markdown, terminal};
use serde_json::Value;

use crate::fixtures::{self, HOSTILE};

/// Tags of a page with their attributes, as a browser would cut them: text inside script and style apart.
fn tags(page: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').unwrap();
        let tag = &rest[start + 1..end];
        tags.push(tag);
        rest = &rest[end + 1..];
        for raw in ["script", "style"] {
            if tag.split([' ', '/']).next() == Some(raw) {
                let close = format!("</{raw}");
                rest = &rest[rest.find(&close).unwrap()..];
            }
        }
    }
    tags
}

#[test]
fn hostile_strings_add_no_element_and_no_attribute_to_the_page() {
    let hostile = fixtures::hostile();
    let page = html(&[hostile.view()]);
    let scripts: Vec<&str> = tags(&page).into_iter().filter(|t| t.starts_with("script")).collect();
    assert_eq!(scripts, ["script type=\"application/json\" id=\"data\"", "script"]);
    for tag in tags(&page) {
        assert!(!tag.starts_with("img"), "{tag}");
        for attribute in ["onerror", "onload", "href=\"javascript", "src=", "style="] {
            let outside_quotes: String = tag.split('"').step_by(2).collect();
            assert!(
                !outside_quotes.contains(attribute) || attribute == "src=" && !tag.contains(" src="),
                "{tag}"
            );
        }
    }
    assert!(page.contains("&lt;img src=x"), "the strings are shown, as text");
}

/// Findings in which every text is hostile.
fn hostile_findings() -> Findings {
    fn spoil(value: &mut Value) {
        match value {
            Value::String(text) => text.push_str(HOSTILE),
            Value::Array(all) => all.iter_mut().for_each(spoil),
            Value::Object(all) => all.values_mut().for_each(spoil),
            _ => {}
        }
    }
    let mut findings = Findings::from_json(include_str!("../../src/findings/example.json")).unwrap();
    for finding in &mut findings.findings {
        for text in [
            &mut finding.claim,
            &mut finding.area,
            &mut finding.title,
            &mut finding.summary,
            &mut finding.why,
        ] {
            text.push_str(HOSTILE);
        }
        for evidence in &mut finding.evidence {
            evidence.fact.push_str(HOSTILE);
            evidence.source.push_str(HOSTILE);
            evidence.value = serde_json::json!({"a": [HOSTILE]});
            spoil(&mut evidence.value);
        }
        for text in finding.arithmetic.iter_mut().chain(&mut finding.traps).chain(&mut finding.sources) {
            text.push_str(HOSTILE);
        }
        for missing in &mut finding.missing {
            missing.fact.push_str(HOSTILE);
            missing.why.push_str(HOSTILE);
        }
        if let Some(remedy) = &mut finding.remedy {
            for step in remedy.now.iter_mut().chain(&mut remedy.persistent).chain(&mut finding.undo) {
                step.text.push_str(HOSTILE);
            }
            remedy.risk.push_str(HOSTILE);
        }
        if let Some(accepted) = &mut finding.accepted {
            accepted.reason.push_str(HOSTILE);
        }
    }
    findings.scope.server.push_str(HOSTILE);
    findings.scope.notes.push(HOSTILE.to_owned());
    findings.facts_digest.push_str(HOSTILE);
    findings
}

#[test]
fn hostile_findings_add_no_element_no_attribute_and_no_address_to_their_page() {
    let honest =
        findings::html(&Findings::from_json(include_str!("../../src/findings/example.json")).unwrap());
    let page = findings::html(&hostile_findings());
    let elements = |page: &str| -> Vec<String> { tags(page).into_iter().map(str::to_owned).collect() };
    let [honest, mut hostile] = [elements(&honest), elements(&page)];
    // The note that the page lacks for harmless text.
    let note = hostile.iter().position(|tag| tag == "p class=\"note\"").unwrap();
    hostile.drain(note..note + 2);
    assert_eq!(hostile, honest, "the same elements with the same attributes, in the same order");
    assert!(page.contains("&lt;img src=x"), "the strings are shown, as text");
    assert!(page.contains("default-src 'none'; style-src 'sha256-"));
}

#[test]
fn only_the_expected_elements_are_used() {
    let (a, b) = (fixtures::hostile(), fixtures::sweep());
    const KNOWN: &str = "!DOCTYPE html head meta title style body header p h1 h2 h3 span ol ul li b div nav a main section \
        figure figcaption svg path desc g line text rect details summary table thead tbody tr th td small dl dt dd \
        code pre footer script";
    for page in [html(&[a.view()]), html(&[a.view(), b.view()])] {
        for tag in tags(&page) {
            let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
            assert!(KNOWN.split_whitespace().any(|k| k == name), "<{tag}>");
        }
    }
}

#[test]
fn the_policy_forbids_every_request_and_names_its_own_style_and_script() {
    let page = html(&[fixtures::empty().view()]);
    let policy =
        page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
}

#[test]
fn the_values_for_the_script_survive_as_they_are() {
    let page = html(&[fixtures::hostile().view()]);
    let block = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(block).unwrap();
    let names: Vec<&str> = data["charts"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|c| c["s"].as_array().unwrap())
        .map(|s| s["n"].as_str().unwrap())
        .collect();
    assert!(names.contains(&format!("error 1213{HOSTILE}").as_str()), "{names:?}");
}

#[test]
fn no_escape_sequence_reaches_the_terminal() {
    let text = terminal(&[fixtures::hostile().view()], false, 100);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(!text.contains('\u{202e}') && !text.contains('\u{2028}'));
    // With colour, the only sequences are our own.
    let text = terminal(&[fixtures::hostile().view()], true, 100);
    for sequence in text.split('\u{1b}').skip(1) {
        assert!(
            ["[0m", "[1m", "[2m", "[32m", "[1;31m", "[1;33m"].iter().any(|ours| sequence.starts_with(ours)),
            "{sequence:?}"
        );
    }
}

#[test]
fn hostile_strings_are_text_in_markdown() {
    let text = markdown(&[fixtures::hostile().view()]);
    // Code is indented, and nothing has a meaning there.
    for line in text.lines().filter(|l| !l.starts_with("    ")) {
        assert!(!line.contains('<') && !line.contains("](") && !line.contains("://"), "{line}");
    }
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut widths = text.lines().filter(|l| l.starts_with('|')).map(columns).collect::<Vec<_>>();
    widths.dedup();
    assert!(widths.len() <= 5, "a cell broke its table: {widths:?}");
}
