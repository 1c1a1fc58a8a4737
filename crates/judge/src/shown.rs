//! Findings for readers who must not see names.

use mydyno_model::claim::StepKind;
use mydyno_model::facts::FactSet;
use mydyno_model::finding::{Finding, RemedyStep, State};

use crate::claim::Claim;
use crate::judge::judge;

/// Restates a finding from unredacted facts in terms of redacted facts. The result stays; no text from the unredacted facts
/// does.
///
/// A redacted token can prevent an expression from recognising the original text. The finding then contains only what needs no
/// names.
pub fn told_by(claim: &Claim, open: Finding, shown: &FactSet) -> Finding {
    let told = judge(claim, shown);
    let steps = |f: &Finding| {
        let kinds = |steps: &[RemedyStep]| steps.iter().map(|s| s.kind).collect::<Vec<StepKind>>();
        (f.remedy.as_ref().map(|r| (kinds(&r.now), kinds(&r.persistent))), kinds(&f.undo))
    };
    if told.state == open.state && steps(&told) == steps(&open) {
        return Finding { severity: open.severity, rank: open.rank, ..told };
    }
    let summary = match open.state {
        State::Violated => format!("This does not hold here: {}.", open.title),
        State::Holds => format!("{}.", open.title),
        State::NotApplicable => "It does not apply here.".to_owned(),
        State::Unknown => "Unknown.".to_owned(),
    };
    let mut remedy = open.remedy;
    if let Some(remedy) = &mut remedy {
        remedy.now.clear();
        let text = "The steps name what is hidden here: audit without --redact to see them.".to_owned();
        remedy.persistent = vec![RemedyStep { kind: StepKind::Text, text }];
    }
    Finding { summary, evidence: vec![], arithmetic: vec![], missing: vec![], undo: vec![], remedy, ..open }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Claims;
    use mydyno_model::Header;
    use mydyno_model::facts::Fact;
    use serde_json::{Map, Value, json};
    use time::OffsetDateTime;

    fn set(facts: &[(&str, Value)]) -> FactSet {
        FactSet {
            header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH),
            facts: facts.iter().map(|(id, v)| ((*id).to_owned(), Fact::ok(v.clone(), "", "t"))).collect(),
            extra: Map::new(),
        }
    }

    #[test]
    fn a_token_in_the_place_of_an_option_does_not_make_a_claim_hold() {
        let claims = Claims::embedded().unwrap();
        let facts = |option: &str| {
            set(&[
                ("storage.datadir.mount_options", json!(["rw", option])),
                ("storage.datadir.mount_point", json!("/srv/acme")),
                ("storage.datadir.filesystem", json!("ext4")),
            ])
        };
        let (open, hidden) = (facts("nobarrier"), facts("n01234567"));
        let claim = claims.find("barriers").unwrap();
        assert_eq!(judge(claim, &hidden).state, State::Holds);
        let told = told_by(claim, judge(claim, &open), &hidden);
        assert_eq!(told.state, State::Violated);
        assert!(!serde_json::to_string(&told).unwrap().contains("acme"));
    }

    #[test]
    fn a_finding_is_told_with_the_hidden_names() {
        let claims = Claims::embedded().unwrap();
        let claim = claims.find("no-primary-key").unwrap();
        let facts = |table: &str| {
            set(&[
                ("schema.tables", json!(3)),
                ("schema.without_primary_key", json!(1)),
                ("schema.without_primary_key_tables", json!([table])),
            ])
        };
        let told = told_by(claim, judge(claim, &facts("payroll.salaries")), &facts("n01.n02"));
        assert!(told.summary.contains("n01.n02"), "{}", told.summary);
        let text = serde_json::to_string(&told).unwrap();
        assert!(text.contains("`n01`.`n02`") && !text.contains("payroll"), "{text}");
    }
}
