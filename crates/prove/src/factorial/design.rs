//! From the request to the run table: the design, its alias table, the blocks that fit, and their random order.

use std::collections::BTreeMap;

use mydyno_levers::LeverSet;
use mydyno_model::Header;
use mydyno_model::experiment::definition::{LoadDefinition, Mode};
use mydyno_model::experiment::factorial::{
    AliasRow, AliasedWith, DesignFamily, Factor, Factorial, FactorialRow, FactorialRun,
};
use mydyno_model::experiment::{LeverLevel, Role};
use mydyno_stats::power::detectable_contrast;
use mydyno_stats::rng::Rng;
use mydyno_stats::two_level::{Family, TwoLevel, letters};
use serde_json::Map;
use time::OffsetDateTime;

use crate::arm::{Common, ServerArm, of_the_host, pairs, plan_errors, server_arm};
use crate::budget::{TURN_S, Times};
use crate::error::ProveError;
use crate::side;

/// Most factors whose full factorial is the default: 16 runs.
const FULL_UP_TO: usize = 4;
/// Most factors whose fraction is the default: 32 runs.
const FRACTIONAL_UP_TO: usize = 11;
/// Fewest degrees of freedom of the noise: with fewer, intervals are several times as wide.
const FEWEST_DF: usize = 6;
/// Most blocks: the table is written before the first row.
const MOST_BLOCKS: usize = 2000;
/// Standard deviation of a row's log response on one running server, as observed on machines with two CPUs.
const USUAL_SD_IN_PLACE: f64 = 0.045;
/// The same with a server start for each row.
const USUAL_SD_OF_ROWS: f64 = 0.05;
/// Simultaneous coverage of all intervals of a response.
pub const LEVEL: f64 = 0.95;
/// Label of the random stream of the order of rows.
const ORDER: u64 = u64::from_be_bytes(*b"factorod");

/// A lever with two levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorLevels {
    /// The low level.
    pub low: LeverLevel,
    /// The high level, of the same lever.
    pub high: LeverLevel,
}

/// The user's request.
#[derive(Debug, Clone)]
pub struct FactorialRequest {
    /// Name of the experiment.
    pub name: String,
    /// The load.
    pub load: LoadDefinition,
    /// The factors.
    pub factors: Vec<FactorLevels>,
    /// Levers of all runs.
    pub both: Vec<LeverLevel>,
    /// How the runs are chosen; by default by the number of factors.
    pub family: Option<Family>,
    /// Runs of a block, to override the default of a fraction or a screening design.
    pub runs: Option<usize>,
    /// How rows share the machine; by default by the levers.
    pub mode: Option<Mode>,
    /// δ, as a share.
    pub delta: f64,
    /// Time for the whole experiment in seconds.
    pub budget_s: f64,
    /// Lengths of the parts.
    pub times: Times,
    /// Seed of the order of rows.
    pub seed: u64,
}

/// A planned experiment, before any change is made.
pub struct Planned {
    /// The document, without results.
    pub document: Factorial,
    /// How long it takes, in seconds.
    pub takes_s: f64,
    /// Settings of the whole host that it changes meanwhile, as `LEVER=VALUE`.
    pub of_the_host: Vec<String>,
    /// The runs of the design, in its order.
    pub(crate) arms: Vec<ServerArm>,
    /// The levers that all runs share.
    pub(crate) shared: LeverSet,
    /// Rows that an earlier execution of the same table measured.
    pub(crate) before: Vec<FactorialRun>,
}

/// Reads `LEVER=LOW,HIGH`; a bare name is a server variable, as in a side of a comparison.
///
/// # Errors
/// No lever, or not two different levels.
pub fn parse(text: &str) -> Result<FactorLevels, ProveError> {
    let refuse = |why: &str| ProveError::Factor { factor: text.to_owned(), why: why.to_owned() };
    let (lever, levels) = text.split_once('=').ok_or_else(|| refuse("it has no ="))?;
    let by = if levels.contains('|') { '|' } else { ',' };
    let levels: Vec<&str> = levels.split(by).map(str::trim).collect();
    let [low, high] = levels.as_slice() else {
        return Err(refuse(&format!("it has {} levels, and needs two", levels.len())));
    };
    if low == high || low.is_empty() || high.is_empty() {
        return Err(refuse("its two levels must differ, and none may be empty"));
    }
    let level =
        |value: &str| side::parse(&format!("{lever}={value}")).map_err(|error| refuse(&error.to_string()));
    Ok(FactorLevels { low: level(low)?, high: level(high)? })
}

/// The design for this many factors: all combinations of up to four, a fraction of up to eleven, a screening design of
/// more.
///
/// # Errors
/// There is none of this kind.
pub fn choose(factors: usize, family: Option<Family>, runs: Option<usize>) -> Result<TwoLevel, ProveError> {
    let family = family.unwrap_or(match factors {
        0..=FULL_UP_TO if runs.is_none_or(|runs| runs == 1 << factors) => Family::Full,
        0..=FRACTIONAL_UP_TO => Family::Fractional,
        _ => Family::Screening,
    });
    let design = match family {
        Family::Full => TwoLevel::full(factors),
        Family::Fractional => TwoLevel::fractional(factors, runs),
        Family::Screening => TwoLevel::screening(factors, runs),
    };
    let design = design.map_err(ProveError::TwoLevel)?;
    match runs {
        Some(runs) if runs != design.runs.len() => {
            let why =
                format!("a full factorial of {factors} factors has {} runs, not {runs}", design.runs.len());
            Err(ProveError::TwoLevel(mydyno_stats::Error::Design(why)))
        }
        _ => Ok(design),
    }
}

/// The aliases of each effect that a design estimates.
pub fn alias_table(design: &TwoLevel) -> Vec<AliasRow> {
    let most = if design.family == Family::Screening { 2 } else { 3 };
    let row = |effect: &Vec<usize>| {
        let mut by_weight: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for alias in design.aliases(effect, most) {
            by_weight.entry((alias.weight * 1e6).round() as i64).or_default().push(letters(&alias.factors));
        }
        // The largest weight first.
        let aliased = by_weight.into_iter().rev();
        let aliased_with =
            aliased.map(|(weight, effects)| AliasedWith { weight: weight as f64 / 1e6, effects }).collect();
        AliasRow { effect: letters(effect), aliased_with }
    };
    design.effects().iter().map(row).collect()
}

/// Each run of the design once in each block, in a new random order for each block.
pub fn table(runs: usize, blocks: usize, seed: u64) -> Vec<FactorialRow> {
    let mut rng = Rng::stream(seed, &[ORDER]);
    let mut rows = Vec::with_capacity(runs * blocks);
    for block in 0..blocks {
        let mut order: Vec<usize> = (0..runs).collect();
        rng.shuffle(&mut order);
        rows.extend(order.into_iter().map(|run| (block, run)));
    }
    let numbered = rows.into_iter().enumerate();
    numbered.map(|(order, (block, run))| FactorialRow { order, block, run }).collect()
}

/// Time of this many blocks, in seconds.
fn takes_s(times: &Times, mode: Mode, runs: usize, blocks: usize) -> f64 {
    let start_s = times.start_s + times.warmup_s;
    let row_s = times.slice_s + times.settle_s + TURN_S;
    let rows = (runs * blocks) as f64;
    if mode == Mode::InPlace { start_s + rows * row_s } else { rows * (start_s + row_s) }
}

/// As many blocks as fit.
fn blocks(wanted: &FactorialRequest, mode: Mode, runs: usize) -> Result<usize, ProveError> {
    let fewest = 1 + FEWEST_DF.div_ceil(runs - 1).max(1);
    let of = |blocks: usize| takes_s(&wanted.times, mode, runs, blocks);
    let per_block_s = of(2) - of(1);
    let fit = ((wanted.budget_s - of(0)) / per_block_s).floor().max(0.0) as usize;
    if fit < fewest {
        let (budget_s, needed_s) = (wanted.budget_s, of(fewest).ceil());
        return Err(ProveError::FactorBudget { budget_s, blocks: fewest, runs, needed_s });
    }
    Ok(fit.min(MOST_BLOCKS))
}

/// The smallest effect, as a share, that a whole table detects with a probability of 80 %, with usual noise.
fn smallest_effect(mode: Mode, runs: usize, blocks: usize, effects: usize, delta: f64) -> f64 {
    let sd = if mode == Mode::InPlace { USUAL_SD_IN_PLACE } else { USUAL_SD_OF_ROWS };
    // A main effect is the difference of two means over half of the rows each.
    let error = 2.0 * sd / ((runs * blocks) as f64).sqrt();
    let beyond = detectable_contrast((runs - 1) * (blocks - 1), error, (1.0 - LEVEL) / effects as f64);
    (1.0 + delta) * beyond.exp() - 1.0
}

/// The levers of one run.
fn levels(wanted: &FactorialRequest, run: &[bool]) -> Vec<LeverLevel> {
    let level =
        |(factor, high): (&FactorLevels, &bool)| if *high { &factor.high } else { &factor.low }.clone();
    wanted.factors.iter().zip(run).map(level).collect()
}

/// The prices of one level beyond those of the levers that all runs share.
fn prices(wanted: &FactorialRequest, level: &LeverLevel) -> Result<Vec<String>, Vec<ProveError>> {
    let of = |levers: &[LeverLevel]| LeverSet::parse(&pairs(levers)).map(|lever_set| lever_set.ledger);
    let who = format!("{}={}", level.lever, level.value);
    let shared = of(&wanted.both).unwrap_or_default();
    let all = of(&[wanted.both.as_slice(), std::slice::from_ref(level)].concat())
        .map_err(|errors| plan_errors(&who, &errors))?;
    Ok(all.into_iter().filter(|price| !shared.contains(price)).collect())
}

fn factors(wanted: &FactorialRequest) -> Result<Vec<Factor>, Vec<ProveError>> {
    let (mut factors, mut problems) = (Vec::new(), Vec::new());
    for (number, factor) in wanted.factors.iter().enumerate() {
        let mut price =
            |level| prices(wanted, level).map_err(|found| problems.extend(found)).unwrap_or_default();
        let (low_prices, high_prices) = (price(&factor.low), price(&factor.high));
        if wanted.factors[..number].iter().any(|other| other.low.lever == factor.low.lever) {
            let why = "another factor has the same lever".to_owned();
            problems.push(ProveError::Factor { factor: factor.low.lever.clone(), why });
        }
        factors.push(Factor {
            letter: letters(&[number]),
            lever: factor.low.lever.clone(),
            low: factor.low.value.clone(),
            high: factor.high.value.clone(),
            low_prices,
            high_prices,
        });
    }
    if problems.is_empty() { Ok(factors) } else { Err(problems) }
}

/// The requested mode, if the levers permit it; by default in place if they all permit that, else rows.
fn mode(wanted: Option<Mode>, arms: &[ServerArm]) -> Result<Mode, ProveError> {
    let needs_start = arms.iter().find(|arm| !arm.own.is_in_place());
    match (wanted, needs_start) {
        (Some(Mode::Alternate | Mode::Duet), _) => Err(ProveError::FactorMode),
        (Some(Mode::InPlace), Some(arm)) => Err(ProveError::NotInPlace { lever: arm.arm.label() }),
        (None | Some(Mode::InPlace), None) => Ok(Mode::InPlace),
        (None | Some(Mode::Rows), _) => Ok(Mode::Rows),
    }
}

impl Planned {
    /// Parses the factors, chooses the design, divides the budget, and writes the table.
    ///
    /// # Errors
    /// All mistakes of the factors; no design for them, a mode that the levers do not permit, or a budget that is too
    /// short.
    pub fn plan(wanted: &FactorialRequest, now: OffsetDateTime) -> Result<Self, Vec<ProveError>> {
        let one = |error: ProveError| vec![error];
        let factors = factors(wanted)?;
        let design = choose(factors.len(), wanted.family, wanted.runs).map_err(one)?;
        let common = Common { set_up: &wanted.both, load: &wanted.load, slice_s: wanted.times.slice_s, now };
        let mut arms = Vec::with_capacity(design.runs.len());
        for run in &design.runs {
            let who = format!("run {}", signs(run));
            arms.push(server_arm(Role::Treatment, &who, &levels(wanted, run), &common)?);
        }
        let mode = mode(wanted.mode, &arms).map_err(one)?;
        let runs = design.runs.len();
        let blocks = blocks(wanted, mode, runs).map_err(one)?;
        let aliases = alias_table(&design);
        let words = |sets: &[Vec<usize>]| sets.iter().map(|set| letters(set)).collect();
        let document = Factorial {
            header: Header::of::<Factorial>(now),
            experiment: wanted.name.clone(),
            question: question(wanted),
            answer: String::new(),
            factors,
            both: wanted.both.clone(),
            family: match design.family {
                Family::Full => DesignFamily::Full,
                Family::Fractional => DesignFamily::Fractional,
                Family::Screening => DesignFamily::Screening,
            },
            resolution: design.resolution,
            generators: design
                .generators
                .iter()
                .map(|(factor, of)| format!("{}={}", letters(&[*factor]), letters(of)))
                .collect(),
            defining_relation: words(&design.defining),
            runs: design.runs.iter().map(|run| signs(run)).collect(),
            mode,
            load: arms[0].load.plan.clone(),
            request: wanted.load.clone(),
            delta: wanted.delta,
            seed: wanted.seed,
            slice_s: wanted.times.slice_s,
            settle_s: wanted.times.settle_s,
            warmup_s: wanted.times.warmup_s,
            blocks,
            smallest_effect: smallest_effect(mode, runs, blocks, aliases.len(), wanted.delta),
            rows: table(runs, blocks, wanted.seed),
            aliases,
            measured_rows: 0,
            responses: Vec::new(),
            failures: Vec::new(),
            threats: Vec::new(),
            set_up: Vec::new(),
            crashes: Vec::new(),
            changed: Vec::new(),
            command: None,
            extra: Map::new(),
        };
        let shared =
            LeverSet::parse(&pairs(&wanted.both)).map_err(|errors| plan_errors("all runs", &errors))?;
        let takes_s = takes_s(&wanted.times, mode, runs, blocks);
        let of_the_host = of_the_host(&arms);
        Ok(Self { document, takes_s, of_the_host, arms, shared, before: Vec::new() })
    }

    /// Peak disk usage in bytes, roughly: one server with its tables.
    pub fn disk_bytes(&self) -> u64 {
        let tables = self.arms.iter().map(|arm| arm.load.work.tables.disk_bytes()).max().unwrap_or(0);
        crate::comparison::DATA_DIRECTORY + tables + tables / 4
    }
}

fn question(wanted: &FactorialRequest) -> String {
    let levers: Vec<&str> = wanted.factors.iter().map(|factor| factor.low.lever.as_str()).collect();
    let (delta, load) = (wanted.delta * 100.0, &wanted.load.workload);
    format!(
        "Under {load}, which of {} change the transactions a second by more than {delta:.1} %?",
        levers.join(", ")
    )
}

/// A run as `+` and `-`, a sign for each factor.
fn signs(run: &[bool]) -> String {
    run.iter().map(|high| if *high { '+' } else { '-' }).collect()
}

#[cfg(test)]
pub(crate) mod tests;
