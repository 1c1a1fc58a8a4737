//! Findings as one self-contained HTML file that loads no other resource: remedies by priority, with evidence and reversal.

use maud::{Markup, html};
use mydyno_model::claim::StepKind;
use mydyno_model::finding::{Evidence, Finding, Findings, RemedyStep, State};

use super::{
    address, by_severity, counted, instance, ledger, of_state, places, proof, proved, seen, takes,
    unknown_by_reason, value_text,
};
use crate::answer::of_findings;
use crate::chart::data_block;
use crate::page::{Section, document, in_sections};
use crate::table::{Cell, Table};
use crate::text::html as esc;

/// The whole page.
pub fn html(findings: &Findings) -> String {
    let violated: Vec<&Finding> = of_state(findings, State::Violated).collect();
    let details = html! { @for (n, finding) in violated.iter().enumerate() { (violation(n, finding)) } };
    let sections = [
        Section { id: "overview", title: "In order", html: overview(&violated) },
        Section { id: "findings", title: "What to do", html: details },
        Section { id: "unknown", title: "Cannot be told", html: unknown(findings) },
        Section { id: "accepted", title: "Accepted", html: accepted(findings) },
        Section { id: "rest", title: "The rest", html: rest(findings) },
    ];
    let body = html! { (masthead(findings)) (in_sections(&sections)) (footer(findings)) };
    document(&title(findings), &body, &data_block(&[]))
}

fn title(findings: &Findings) -> String {
    match findings.scope.server.as_str() {
        "" => "mydyno audit".to_owned(),
        server => format!("{server} · mydyno audit"),
    }
}

fn masthead(findings: &Findings) -> Markup {
    let server = match findings.scope.server.as_str() {
        "" => "A host",
        server => server,
    };
    let counts = [by_severity(findings), counted(findings) + "."];
    let counts = counts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<String>>().join("; ");
    // With the notes in one paragraph these are four lines at most.
    let lines = [instance(findings), seen(findings), counts];
    html! {
        header {
            "\n"
            p.brand { "mydyno audit" } "\n"
            h1 { (esc(server)) } "\n"
            p.answer { (esc(&of_findings(findings))) } "\n"
            @for line in lines.iter().filter(|line| !line.is_empty()) { p.about { (esc(line)) } "\n" }
            @if !findings.scope.notes.is_empty() { p.note { (esc(&findings.scope.notes.join(" "))) } "\n" }
        }
        "\n"
    }
}

/// One line for each finding, most severe first.
fn overview(violated: &[&Finding]) -> Markup {
    html! {
        @if violated.is_empty() {
            p.fine { "No claim is violated, of those that could be told." } "\n"
        } @else {
            ol.found {
                "\n"
                @for (first, place) in violated.iter().enumerate().zip(places(violated)) {
                    @if place.is_some() {
                        li {
                            (heading(first))
                            @for same in violated.iter().enumerate().skip(first.0 + 1).take_while(|(_, f)| f.same_cause_as.is_some()) {
                                br; "+ " (heading(same))
                            }
                        }
                        "\n"
                    }
                }
            }
            "\n"
        }
    }
}

fn heading((n, finding): (usize, &&Finding)) -> Markup {
    html! { (severity(finding)) " " a href={ "#f" (n) } { (esc(&finding.claim)) } " " (esc(&finding.summary)) }
}

fn severity(finding: &Finding) -> Markup {
    let name = finding.severity.name();
    html! { b class={ "severity " (name) } { (name) } }
}

fn violation(n: usize, finding: &Finding) -> Markup {
    html! {
        div.finding id={ "f" (n) } {
            "\n"
            h3 { (severity(finding)) " " (esc(&finding.claim)) " " span { (esc(&finding.area)) } } "\n"
            p.summary { (esc(&finding.summary)) } "\n"
            p { (esc(&finding.why)) } "\n"
            @if !finding.evidence.is_empty() { (evidence(&finding.evidence).html()) }
            @if !finding.arithmetic.is_empty() {
                (labelled("Shown by", &block("shown", &finding.arithmetic.join("\n"))))
            }
            @if let Some(remedy) = &finding.remedy {
                (steps("Now", &remedy.now, false))
                (steps("Lasting", &remedy.persistent, true))
                (steps("Undo", &finding.undo, false))
            }
            (small_print(finding))
        }
        "\n"
    }
}

fn evidence(evidence: &[Evidence]) -> Table {
    let mut table = Table::new(["Evidence", "", "read from"]);
    table.prose = true;
    for Evidence { fact, value, unit, source } in evidence {
        table.row([
            Cell::from(fact.as_str()),
            Cell::from(value_text(value, unit)),
            Cell::from(source.as_str()),
        ]);
    }
    table
}

/// Considerations before applying a remedy, and references of the claim.
fn small_print(finding: &Finding) -> Markup {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if let Some(remedy) = &finding.remedy {
        rows.push(("Takes", takes(remedy)));
        rows.push(("Risk", remedy.risk.clone()));
    }
    rows.extend(finding.ledger.iter().map(|entry| ("Ledger", ledger(entry))));
    rows.extend(finding.traps.iter().map(|trap| ("But", trap.clone())));
    rows.push(("Proof", proof(&finding.proof)));
    rows.extend(finding.proved.iter().map(|verdict| ("Proved", proved(verdict))));
    rows.extend(finding.sources.iter().map(|source| ("Source", source.clone())));
    rows.retain(|(_, text)| !text.is_empty());
    html! {
        dl.small {
            @for of_name in rows.chunk_by(|(a, _), (b, _)| a == b) {
                @for (n, (name, text)) in of_name.iter().enumerate() {
                    @let (text, at) = if *name == "Source" { address(text) } else { (text.as_str(), "") };
                    @if n == 0 { dt { (name) } }
                    dd { (esc(text)) @if !at.is_empty() { a href=(esc(at)) rel="noreferrer" { (esc(at)) } } }
                }
            }
        }
        "\n"
    }
}

fn labelled(label: &str, content: &Markup) -> Markup {
    html! { p.label { (esc(label)) } "\n" (content) }
}

fn block(class: &str, text: &str) -> Markup {
    // A tab stop lets the keyboard scroll a block that is wider than the page.
    html! { pre class=(class) tabindex="0" { code { (esc(text)) } } "\n" }
}

/// Adjacent steps of one kind form one block, so that they can be copied together.
fn steps(when: &str, steps: &[RemedyStep], lasting: bool) -> Markup {
    html! { @for run in steps.chunk_by(|a, b| a.kind == b.kind) { (of_one_kind(when, run, lasting)) } }
}

fn of_one_kind(when: &str, steps: &[RemedyStep], lasting: bool) -> Markup {
    let Some(first) = steps.first() else { return Markup::default() };
    let label = match place(first.kind, lasting) {
        "" => when.to_owned(),
        place => format!("{when}: {place}"),
    };
    if first.kind == StepKind::Text {
        return labelled(&label, &html! { @for step in steps { p { (esc(&step.text)) } "\n" } });
    }
    let lines: Vec<String> = steps.iter().map(|step| line(step, lasting)).collect();
    labelled(&label, &block("command", &lines.join("\n")))
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

fn unknown(findings: &Findings) -> Markup {
    let mut table = Table::new(["because", "unknown claims"]);
    table.prose = true;
    for (why, claims) in unknown_by_reason(findings) {
        table.row([Cell::from(why), Cell::from(claims.join(", "))]);
    }
    html! { @if !table.is_empty() { (table.html()) } }
}

fn accepted(findings: &Findings) -> Markup {
    let mut table = Table::new(["claim", "until", "reason"]);
    table.prose = true;
    for (finding, accepted) in findings.findings.iter().filter_map(|f| Some((f, f.accepted.as_ref()?))) {
        table.row([finding.claim.as_str(), &accepted.until, &accepted.reason]);
    }
    html! { @if !table.is_empty() { (table.html()) } }
}

/// Collapsed lists of the claims that hold and of those that do not apply.
fn rest(findings: &Findings) -> Markup {
    html! { (listed(findings, State::Holds, "hold")) (listed(findings, State::NotApplicable, "do not apply")) }
}

fn listed(findings: &Findings, state: State, title: &str) -> Markup {
    let all: Vec<&Finding> = of_state(findings, state).collect();
    let mut table = Table::new(["claim", ""]);
    table.prose = true;
    for finding in &all {
        let text = if state == State::Holds { &finding.title } else { &finding.summary };
        table.row([finding.claim.as_str(), text]);
    }
    html! {
        @if !all.is_empty() { details { summary { (all.len()) " " (title) } (table.html()) } "\n" }
    }
}

fn footer(findings: &Findings) -> Markup {
    let writer = &findings.header.mydyno;
    html! {
        footer {
            p {
                "Made by mydyno " (esc(&writer.version)) " (" (esc(&writer.commit)) ") from facts with the digest "
                (esc(&findings.facts_digest)) ". Nothing has been applied. This file asks for nothing from any network."
            }
        }
        "\n"
    }
}
