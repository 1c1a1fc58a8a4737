use mydyno_model::Header;
use mydyno_model::crash::CrashBy;
use mydyno_model::experiment::price::{CrashCost, Price};
use mydyno_model::experiment::{Arm, Asks, BlockRatio, LeverLevel, Response, Threat};
use serde_json::Map;
use time::OffsetDateTime;

use super::*;

fn verdict() -> Verdict {
    let arm = |role, value: &str| Arm {
        role,
        levers: vec![LeverLevel { lever: "option.x".to_owned(), value: value.to_owned() }],
        prices: vec![],
        jobs: vec![],
    };
    Verdict {
        header: Header::of::<Verdict>(OffsetDateTime::UNIX_EPOCH),
        experiment: "compare-oltp".to_owned(),
        claim: None,
        question: "?".to_owned(),
        answer: "It is \u{1b}[31mfaster".to_owned(),
        verdict: Finding::Supported,
        asks: Asks::Differs,
        delta: 0.01,
        arms: vec![arm(Role::Baseline, "1"), arm(Role::Treatment, "2"), arm(Role::Again, "1")],
        responses: vec![Response {
            name: "transactions_per_s".to_owned(),
            unit: "1/s".to_owned(),
            baseline: 20_000.0,
            treatment: 22_000.0,
            effect_ratio: Estimate::with_interval(1.1, 1.08, 1.12, 0.95, "t"),
        }],
        noise_floor: Some(0.012),
        again: Some(Estimate::provisional(1.001, 0.99, 1.01, "t")),
        minimum_detectable_effect: Some(0.02),
        blocks: 60,
        starts: 5,
        units: "starts".to_owned(),
        units_needed: None,
        price: None,
        threats: vec![Threat {
            id: "trend".to_owned(),
            text: "the effect changed".to_owned(),
            decides: false,
            next_step: "measure longer".to_owned(),
        }],
        failures: vec![],
        scope: "this host".to_owned(),
        set_up: vec!["MariaDB".to_owned()],
        literature: vec![],
        overhead: Some(0.2),
        curve: None,
        probe: None,
        under_mutual_load: false,
        block_ratios: vec![],
        changed: vec![],
        command: None,
        pooled: None,
        extra: Map::new(),
    }
}

#[test]
fn the_answer_comes_first_and_the_figures_follow() {
    let text = terminal(&verdict(), false);
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("SUPPORTED  It is"), "{text}");
    assert!(text.contains("20000 → 22000 1/s: +10.0 % (+8.0 … +12.0 %, level 95 %)"), "{text}");
    assert!(text.contains("~+0.1 % (-1.0 … +1.0 %, provisional)"), "{text}");
    assert!(text.contains("! trend: the effect changed\n    → measure longer"), "{text}");
}

#[test]
fn a_page_has_the_answer_first_the_blocks_and_no_script() {
    let block = |block, treatment, again| BlockRatio { start: 0, block, treatment, again };
    let block_ratios = vec![block(0, Some(1.1), Some(0.99)), block(1, None, Some(1.01))];
    let question = "Is <b> faster?".to_owned();
    let page = html(&Verdict { block_ratios, question, ..verdict() });
    let (answer, table) = (page.find("It is").unwrap(), page.find("<table>").unwrap());
    assert!(answer < table, "{page}");
    assert_eq!(page.matches("<circle").count(), 3, "{page}");
    assert!(!page.contains("<script") && !page.contains("<b> faster") && !page.contains("http"), "{page}");
}

#[test]
fn nothing_foreign_reaches_the_terminal_or_the_table_raw() {
    assert!(!terminal(&verdict(), false).contains('\u{1b}'));
    let markdown = markdown(&verdict());
    assert!(!markdown.contains('\u{1b}'));
    assert!(markdown.starts_with("# compare-oltp\n\n**SUPPORTED** "), "{markdown}");
}

#[test]
fn a_price_stands_with_its_crash_in_every_form() {
    let crash = CrashCost {
        acknowledged: 1003,
        lost: Some(412),
        torn: Some(0),
        why: None,
        ..CrashCost::not_measured(CrashBy::PowerCut, String::new())
    };
    let price = Some(Price { ledger: vec!["durability: x=2.".to_owned()], crashes: vec![crash] });
    let verdict = Verdict { price, ..verdict() };
    for text in [terminal(&verdict, false), markdown(&verdict), html(&verdict)] {
        for says in ["durability: x", "lost 412 of 1003 acknowledged commits"] {
            assert!(text.contains(says), "{says}: {text}");
        }
    }
}

#[test]
fn a_duet_is_labelled_in_every_form() {
    use mydyno_model::Document;
    let verdict = Verdict { under_mutual_load: true, ..verdict() };
    for text in [terminal(&verdict, false), markdown(&verdict), html(&verdict)] {
        let text = text.to_lowercase();
        assert!(text.contains("supported under mutual load"), "{text}");
        assert!(text.contains("not comparable with arms that are loaded in turns"), "{text}");
    }
    assert!(verdict.to_json().contains("\"under_mutual_load\": true"), "{}", verdict.to_json());
}

#[test]
fn a_curve_is_shown_value_by_value_and_as_a_plot() {
    let point = |value: &str, arm, ratio: Option<f64>| CurvePoint {
        value: value.to_owned(),
        arm,
        mean: ratio.map(|ratio| 1000.0 * ratio),
        effect_ratio: ratio
            .filter(|_| arm != Role::Baseline)
            .map(|r| Estimate::with_interval(r, r * 0.9, r * 1.1, 0.975, "t")),
    };
    let curve = Curve {
        lever: "workload.threads".to_owned(),
        response: "per_s".to_owned(),
        unit: "1/s".to_owned(),
        points: vec![
            point("1", Role::Baseline, Some(1.0)),
            point("4<b>", Role::Level1, Some(3.0)),
            point("8", Role::Level2, None),
            point("16", Role::Treatment, Some(4.0)),
        ],
    };
    let verdict = Verdict { curve: Some(curve), ..verdict() };
    let text = terminal(&verdict, false);
    assert!(text.contains("workload.threads=1: 1000 1/s, the baseline"), "{text}");
    assert!(text.contains("workload.threads=16: 4000 1/s, +300.0 % (+260.0 … +340.0 %"), "{text}");
    assert!(text.contains("workload.threads=8: not measured"), "{text}");
    let page = html(&verdict);
    assert_eq!(page.matches("<circle").count(), 3, "{page}");
    assert!(page.contains("4&lt;b&gt;") && !page.contains("4<b>") && page.contains("<polyline"), "{page}");
}
