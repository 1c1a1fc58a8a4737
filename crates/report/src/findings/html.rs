//! Findings as one self-contained HTML file that loads no other resource: remedies by priority, with evidence and reversal.

use std::fmt::Write;

use mydyno_model::claim::StepKind;
use mydyno_model::finding::{Evidence, Finding, Findings, RemedyStep, State};

use super::{
    address, by_severity, counted, instance, ledger, of_state, proof, proved, seen, takes, unknown_by_reason,
    value_text,
};
use crate::chart::data_block;
use crate::page::document;
use crate::table::{Cell, Table};
use crate::text::html as esc;

/// The whole page.
pub fn html(findings: &Findings) -> String {
    let violated: Vec<&Finding> = of_state(findings, State::Violated).collect();
    let sections = [
        ("overview", "In order", overview(&violated)),
        ("findings", "What to do", violated.iter().enumerate().map(|(n, f)| violation(n, f)).collect()),
        ("unknown", "Cannot be told", unknown(findings)),
        ("accepted", "Accepted", accepted(findings)),
        ("rest", "The rest", rest(findings)),
    ];
    let sections: Vec<_> = sections.iter().filter(|(_, _, html)| !html.is_empty()).collect();
    let mut body = masthead(findings);
    body.push_str("<nav aria-label=\"Sections\"><ul>");
    for (id, title, _) in &sections {
        let _ = write!(body, "<li><a href=\"#{id}\">{title}</a></li>");
    }
    body.push_str("</ul></nav>\n<main>\n");
    for (id, title, html) in sections {
        let _ = write!(
            body,
            "<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{title}</h2>\n{html}</section>\n"
        );
    }
    body.push_str("</main>\n");
    body.push_str(&footer(findings));
    document(&title(findings), &body, &data_block(&[]))
}

fn title(findings: &Findings) -> String {
    match findings.scope.server.as_str() {
        "" => "mydyno audit".to_owned(),
        server => format!("{server} · mydyno audit"),
    }
}

fn masthead(findings: &Findings) -> String {
    let server = match findings.scope.server.as_str() {
        "" => "A host",
        server => server,
    };
    let mut out = format!(
        "<header>\n<p class=\"brand\">mydyno audit</p>\n<h1>{}</h1>\n<p class=\"about\">{}</p>\n<p class=\"about\">{}.</p>\n",
        esc(server),
        esc(&seen(findings)),
        esc(&counted(findings))
    );
    for line in [instance(findings), by_severity(findings)].iter().filter(|line| !line.is_empty()) {
        let _ = writeln!(out, "<p class=\"about\">{}</p>", esc(line));
    }
    for note in &findings.scope.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", esc(note));
    }
    out.push_str("</header>\n");
    out
}

/// One line for each finding, most severe first.
fn overview(violated: &[&Finding]) -> String {
    if violated.is_empty() {
        return "<p class=\"fine\">No claim is violated, of those that could be told.</p>\n".to_owned();
    }
    let mut out = String::from("<ol class=\"found\">\n");
    for (n, finding) in violated.iter().enumerate() {
        let _ = writeln!(
            out,
            "<li>{} <a href=\"#f{n}\">{}</a> {}</li>",
            severity(finding),
            esc(&finding.claim),
            esc(&finding.summary)
        );
    }
    out.push_str("</ol>\n");
    out
}

fn severity(finding: &Finding) -> String {
    let name = finding.severity.name();
    format!("<b class=\"severity {name}\">{name}</b>")
}

fn violation(n: usize, finding: &Finding) -> String {
    let mut out = format!(
        "<div class=\"finding\" id=\"f{n}\">\n<h3>{} {} <span>{}</span></h3>\n<p class=\"summary\">{}</p>\n<p>{}</p>\n",
        severity(finding),
        esc(&finding.claim),
        esc(&finding.area),
        esc(&finding.summary),
        esc(&finding.why)
    );
    if !finding.evidence.is_empty() {
        let mut table = Table::new(["Evidence", "", "read from"]);
        table.prose = true;
        for Evidence { fact, value, unit, source } in &finding.evidence {
            table.row([
                Cell::from(fact.as_str()),
                Cell::from(value_text(value, unit)),
                Cell::from(source.as_str()),
            ]);
        }
        out.push_str(&table.html());
    }
    if !finding.arithmetic.is_empty() {
        out.push_str(&labelled("Shown by", &block("shown", &finding.arithmetic.join("\n"))));
    }
    if let Some(remedy) = &finding.remedy {
        out.push_str(&steps("Now", &remedy.now, false));
        out.push_str(&steps("Lasting", &remedy.persistent, true));
        out.push_str(&steps("Undo", &finding.undo, false));
    }
    out.push_str(&small_print(finding));
    out.push_str("</div>\n");
    out
}

/// Considerations before applying a remedy, and references of the claim.
fn small_print(finding: &Finding) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if let Some(remedy) = &finding.remedy {
        rows.push(("Takes", takes(remedy.cost).to_owned()));
        rows.push(("Risk", remedy.risk.clone()));
    }
    rows.extend(finding.ledger.iter().map(|entry| ("Ledger", ledger(entry))));
    rows.extend(finding.traps.iter().map(|trap| ("But", trap.clone())));
    rows.push(("Proof", proof(&finding.proof)));
    rows.extend(finding.proved.iter().map(|verdict| ("Proved", proved(verdict))));
    rows.extend(finding.sources.iter().map(|source| ("Source", source.clone())));
    let mut out = String::from("<dl class=\"small\">");
    let mut last = "";
    for (name, text) in rows.into_iter().filter(|(_, text)| !text.is_empty()) {
        if name != last {
            let _ = write!(out, "<dt>{name}</dt>");
            last = name;
        }
        let (text, address) = if name == "Source" { address(&text) } else { (text.as_str(), "") };
        let _ = write!(out, "<dd>{}", esc(text));
        if !address.is_empty() {
            let _ = write!(out, "<a href=\"{0}\" rel=\"noreferrer\">{0}</a>", esc(address));
        }
        out.push_str("</dd>");
    }
    out.push_str("</dl>\n");
    out
}

fn labelled(label: &str, html: &str) -> String {
    format!("<p class=\"label\">{}</p>\n{html}", esc(label))
}

fn block(class: &str, text: &str) -> String {
    // A tab stop lets the keyboard scroll a block that is wider than the page.
    format!("<pre class=\"{class}\" tabindex=\"0\"><code>{}</code></pre>\n", esc(text))
}

/// Adjacent steps of one kind form one block, so that they can be copied together.
fn steps(when: &str, steps: &[RemedyStep], lasting: bool) -> String {
    let mut out = String::new();
    for run in steps.chunk_by(|a, b| a.kind == b.kind) {
        let Some(first) = run.first() else { continue };
        let label = match place(first.kind, lasting) {
            "" => when.to_owned(),
            place => format!("{when}: {place}"),
        };
        if first.kind == StepKind::Text {
            let words: String = run.iter().map(|s| format!("<p>{}</p>\n", esc(&s.text))).collect();
            out.push_str(&labelled(&label, &words));
        } else {
            let lines: Vec<String> = run.iter().map(|s| line(s, lasting)).collect();
            out.push_str(&labelled(&label, &block("command", &lines.join("\n"))));
        }
    }
    out
}

/// The place where a step is typed or written.
const fn place(kind: StepKind, lasting: bool) -> &'static str {
    match kind {
        StepKind::Sql => "on the server",
        StepKind::Cnf => "option file, [mysqld]",
        StepKind::Sysctl if lasting => "sysctl.d",
        StepKind::Sysctl | StepKind::Shell => "on the host, as root",
        StepKind::Udev => "udev rule",
        StepKind::Systemd => "drop-in of the server's unit, [Service]",
        StepKind::Tmpfiles => "tmpfiles.d",
        StepKind::Kernel => "boot parameter",
        StepKind::Text => "",
    }
}

fn line(step: &RemedyStep, lasting: bool) -> String {
    match step.kind {
        StepKind::Sql => format!("{};", step.text.trim_end_matches(';')),
        StepKind::Sysctl if !lasting => format!("sysctl -w {}", step.text.replace(" = ", "=")),
        _ => step.text.clone(),
    }
}

fn unknown(findings: &Findings) -> String {
    let reasons = unknown_by_reason(findings);
    if reasons.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["because", "cannot be told"]);
    table.prose = true;
    for (why, claims) in reasons {
        table.row([Cell::from(why), Cell::from(claims.join(", "))]);
    }
    table.html()
}

fn accepted(findings: &Findings) -> String {
    let mut table = Table::new(["claim", "until", "reason"]);
    table.prose = true;
    for (finding, accepted) in findings.findings.iter().filter_map(|f| Some((f, f.accepted.as_ref()?))) {
        table.row([finding.claim.as_str(), &accepted.until, &accepted.reason]);
    }
    if table.is_empty() { String::new() } else { table.html() }
}

/// Collapsed lists of the claims that hold and of those that do not apply.
fn rest(findings: &Findings) -> String {
    let mut out = String::new();
    for (state, title) in [(State::Holds, "hold"), (State::NotApplicable, "do not apply")] {
        let mut table = Table::new(["claim", ""]);
        table.prose = true;
        let all: Vec<&Finding> = of_state(findings, state).collect();
        for finding in &all {
            let text = if state == State::Holds { &finding.title } else { &finding.summary };
            table.row([finding.claim.as_str(), text]);
        }
        if !all.is_empty() {
            let _ =
                writeln!(out, "<details><summary>{} {title}</summary>{}</details>", all.len(), table.html());
        }
    }
    out
}

fn footer(findings: &Findings) -> String {
    let writer = &findings.header.mydyno;
    format!(
        "<footer><p>Made by mydyno {} ({}) from facts with the digest {}. Nothing has been applied. This file asks for nothing from any network.</p></footer>\n",
        esc(&writer.version),
        esc(&writer.commit),
        esc(&findings.facts_digest)
    )
}
