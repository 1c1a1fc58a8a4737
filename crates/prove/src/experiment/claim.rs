//! Claims and the experiments that test them.

use mydyno_judge::{Claim, Claims};
use mydyno_model::experiment::LeverLevel;
use mydyno_model::experiment::definition::Definition;

use super::catalogue::{Experiment, Experiments};
use crate::side;

/// The experiment that tests a claim.
///
/// # Errors
/// The claim names none, with its reason; or its proof does not resolve.
pub fn of_claim(claim: &Claim, experiments: &Experiments) -> Result<Experiment, String> {
    let proof = &claim.document.proof;
    if let Some(problem) = unresolved(claim, experiments).into_iter().next() {
        return Err(problem);
    }
    match proof.experiment.as_deref().and_then(|name| experiments.get(name)) {
        Some(experiment) => Ok(experiment.clone()),
        None => Err(proof.not_testable.clone().unwrap_or_else(|| "it names no experiment".to_owned())),
    }
}

/// Parts of a claim's proof that do not resolve: an unknown experiment, a factor that the experiment does not vary, levels that
/// its arms do not have.
pub fn unresolved(claim: &Claim, experiments: &Experiments) -> Vec<String> {
    let proof = &claim.document.proof;
    let Some(name) = &proof.experiment else { return vec![] };
    let experiment = match experiments.find(name) {
        Ok(experiment) => experiment,
        Err(error) => return vec![format!("proof.experiment: {error}")],
    };
    let Some(factor) = &proof.factor else { return vec![] };
    let turned = levels(&experiment.definition, factor);
    if turned.is_empty() {
        return vec![format!("proof.factor: the experiment {name} does not turn {factor}")];
    }
    let stated: Vec<String> =
        proof.levels.iter().map(|l| l.as_str().map_or_else(|| l.to_string(), str::to_owned)).collect();
    let missing = turned.iter().filter(|level| !stated.contains(level));
    missing.map(|level| format!("proof.levels: the experiment {name} turns {factor} to {level}")).collect()
}

/// Claims whose proof is this experiment and which it does not name.
pub fn unnamed(experiment: &Experiment, claims: &Claims) -> Vec<String> {
    let Definition { name, claims: named, .. } = &experiment.definition;
    let of_proof = claims.iter().filter(|claim| claim.document.proof.experiment.as_ref() == Some(name));
    let missing = of_proof.map(|claim| &claim.document.id).filter(|id| !named.contains(id));
    missing.map(|id| format!("claims: the claim {id} has this experiment as its proof.experiment")).collect()
}

/// The values of a lever in both arms.
fn levels(definition: &Definition, factor: &str) -> Vec<String> {
    let arms = [&definition.baseline.levers, &definition.treatment.levers];
    let of_arms = arms.into_iter().flatten().filter_map(|text| side::level(text));
    of_arms.filter(|LeverLevel { lever, .. }| lever == factor).map(|level| level.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_of_every_claim_resolves() {
        let (claims, experiments) = (Claims::embedded().unwrap(), Experiments::embedded().unwrap());
        let problems: Vec<String> = claims
            .iter()
            .flat_map(|claim| {
                let id = &claim.document.id;
                unresolved(claim, &experiments).into_iter().map(move |problem| format!("{id}: {problem}"))
            })
            .collect();
        assert!(problems.is_empty(), "{problems:#?}");
        let proved = claims.iter().filter(|claim| claim.document.proof.experiment.is_some()).count();
        assert!(proved >= 8, "{proved}");
    }

    #[test]
    fn experiments_name_claims_that_name_them() {
        let (claims, experiments) = (Claims::embedded().unwrap(), Experiments::embedded().unwrap());
        for experiment in experiments.iter() {
            assert_eq!(unnamed(experiment, &claims), [""; 0], "{}", experiment.file);
            for id in &experiment.definition.claims {
                let claim = claims.find(id).unwrap();
                let named = claim.document.proof.experiment.as_deref();
                let name = experiment.definition.name.as_str();
                assert_eq!(named, Some(name), "the claim {id}: give it `proof.experiment = {name:?}`");
            }
        }
    }
}
