//! Flame graphs: one self-contained page of folded stacks, with a search, and against an earlier profile if there is one.

mod tree;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use crate::page::document_of;
use crate::text::{html as esc, script_json};
use tree::Node;

const STYLE: &str = include_str!("../../../../web/flame/flame.css");
const SCRIPT: &str = include_str!("../../../../web/flame/flame.js");

/// Functions in the table below a graph.
const LISTED: usize = 30;

/// A stack with its weight, outermost function first.
pub type Stack<'a> = (Vec<&'a str>, f64);

/// One graph of the page.
#[derive(Debug)]
pub struct Flame<'a> {
    /// Its heading.
    pub title: &'a str,
    /// Unit of its weights, as in `samples`.
    pub unit: &'a str,
    /// The stacks.
    pub stacks: Vec<Stack<'a>>,
    /// Those of the profile that it is compared with; none without.
    pub baseline: Vec<Stack<'a>>,
}

/// A graph as the page's script reads it.
#[derive(Serialize)]
struct Part<'a> {
    unit: &'a str,
    total: f64,
    baseline: f64,
    tree: Node,
}

impl<'a> Part<'a> {
    fn of(flame: &Flame<'a>) -> Self {
        let tree = Node::of(&flame.stacks, &flame.baseline);
        let sum = |stacks: &[Stack<'_>]| stacks.iter().map(|(_, weight)| weight).sum();
        Self { unit: flame.unit, total: sum(&flame.stacks), baseline: sum(&flame.baseline), tree }
    }
}

#[derive(Serialize)]
struct Data<'a> {
    parts: Vec<Part<'a>>,
}

/// The page.
pub fn html(title: &str, about: &[String], flames: &[Flame<'_>]) -> String {
    let data = Data { parts: flames.iter().map(Part::of).collect() };
    let body = html! {
        h1 { (esc(title)) } "\n"
        @for line in about { p { (esc(line)) } "\n" }
        form role="search" {
            label for="search" { "Function " }
            input #search type="search" placeholder="a part of its name" autocomplete="off";
        }
        "\n"
        @for (nth, (flame, part)) in flames.iter().zip(&data.parts).enumerate() {
            section {
                h2 { (esc(flame.title)) } "\n"
                @if part.baseline > 0.0 {
                    p { "Red: a larger share than before; blue: a smaller one; grey: within the noise of sampling (two standard errors) or 0.5 points." }
                }
                @if part.total > 0.0 {
                    button type="button" id={ "reset-" (nth) } hidden { "All of it" }
                    svg id={ "graph-" (nth) } role="img" aria-label={ "Flame graph: " (flame.title) } {}
                    p.reported id={ "told-" (nth) } aria-live="polite" {}
                    (table(part))
                } @else {
                    button type="button" id={ "reset-" (nth) } hidden {}
                    svg id={ "graph-" (nth) } hidden {}
                    p id={ "told-" (nth) } { "No stacks." }
                }
            }
            "\n"
        }
    };
    // Plain data, so this cannot fail.
    let json = script_json(&serde_json::to_value(&data).unwrap_or_default());
    let data = html! { script #flame-data type="application/json" { (PreEscaped(json)) } "\n" };
    document_of(title, STYLE, SCRIPT, &body, &data)
}

/// The functions with the largest own weight.
fn table(part: &Part<'_>) -> Markup {
    let percent = |weight: f64, of: f64| format!("{:.1} %", 100.0 * weight / of);
    let functions = part.tree.functions();
    html! {
        div.wide {
            table {
                thead { tr {
                    th.n { "own" }
                    @if part.baseline > 0.0 { th.n { "before" } }
                    th.n { "total" }
                    th { "function" }
                } }
                tbody {
                    @for function in functions.iter().take(LISTED) {
                        tr {
                            td.n { (percent(function.own, part.total)) }
                            @if part.baseline > 0.0 { td.n { (percent(function.own_before, part.baseline)) } }
                            td.n { (percent(function.total, part.total)) }
                            td { (esc(&function.name)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn stacks<'a>(text: &[(&'a str, f64)]) -> Vec<Stack<'a>> {
        text.iter().map(|(stack, weight)| (stack.split(';').collect(), *weight)).collect()
    }

    #[test]
    fn the_page_holds_its_data_and_no_name_leaves_it() {
        let now = stacks(&[("main;a", 3.0), ("main;b;</script><b>", 1.0)]);
        let before = stacks(&[("main;a", 1.0), ("main;gone", 1.0)]);
        let flame = Flame { title: "CPU", unit: "samples", stacks: now, baseline: before };
        let none = Flame { title: "Waits", unit: "seconds", stacks: vec![], baseline: vec![] };
        let page = html("t <x>", &["about".to_owned()], &[flame, none]);
        assert!(page.contains("Content-Security-Policy") && page.contains("No stacks."));
        assert!(!page.contains("</script><b>") && !page.contains("t <x>"), "{page}");
        let data = page.split("application/json\">").nth(1).unwrap().split("</script>").next().unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        let part = &data["parts"][0];
        assert_eq!((part["total"].as_f64(), part["baseline"].as_f64()), (Some(4.0), Some(2.0)));
        assert_eq!(part["tree"]["c"][0]["c"][0]["n"], "a");
        assert_eq!(part["tree"]["c"][0]["c"][0]["b"].as_f64(), Some(1.0));
        assert!(page.contains("75.0 %") && page.contains("50.0 %"), "{page}");
    }

    #[test]
    fn style_and_script_stay_in_their_elements_and_ask_for_nothing() {
        for source in [STYLE, SCRIPT] {
            assert!(!source.contains("</") && !source.contains("<!--"));
            let without_svg = source.replace("http://www.w3.org/2000/svg", "");
            for word in
                ["http:", "https:", "url(", "@import", "fetch(", "XMLHttpRequest", "innerHTML", "eval("]
            {
                assert!(!without_svg.contains(word), "{word}");
            }
        }
    }
}
