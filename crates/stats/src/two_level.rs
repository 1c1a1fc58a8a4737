//! Designs of several factors with two levels each: full factorials, regular fractions, Plackett–Burman screening designs, and
//! their alias structure.
//!
//! Factors are numbered from 0 and shown as letters (I is left out: it stands for the mean). A run gives each factor its low
//! (false) or high (true) level. The generators of the fractions are those of Box, Hunter and Hunter, *Statistics for
//! Experimenters*, table 12.15, also in the NIST/SEMATECH e-Handbook 5.3.3.4.7; the first rows of the screening designs are those
//! of Plackett and Burman, *The Design of Optimum Multifactorial Experiments*, Biometrika 33 (1946).

use std::collections::BTreeSet;

use crate::Error;

/// Letters of the factors.
const LETTERS: &[u8] = b"ABCDEFGHJKLMNOPQRSTUVWXYZ";
/// Most factors of a full factorial: 128 runs a block.
pub const MOST_OF_FULL: usize = 7;
/// Most factors of a fraction.
pub const MOST_OF_FRACTION: usize = 11;
/// Most factors of a screening design.
pub const MOST_OF_SCREENING: usize = 23;

/// Fractions of highest resolution by their number of factors, the one with most runs first: resolution, and generators.
const FRACTIONS: &[(usize, &[&str])] = &[
    (3, &["C=AB"]),
    (4, &["D=ABC"]),
    (5, &["E=ABCD", "D=AB E=AC"]),
    (6, &["F=ABCDE", "E=ABC F=BCD", "D=AB E=AC F=BC"]),
    (7, &["G=ABCDEF", "F=ABCD G=ABDE", "E=ABC F=BCD G=ACD", "D=AB E=AC F=BC G=ABC"]),
    (8, &["G=ABCD H=ABEF", "F=ABC G=ABD H=BCDE", "E=BCD F=ACD G=ABC H=ABD"]),
    (
        9,
        &[
            "H=ACDFG J=BCEFG",
            "G=ABCD H=ACEF J=CDEF",
            "F=BCDE G=ACDE H=ABDE J=ABCE",
            "E=ABC F=BCD G=ACD H=ABD J=ABCD",
        ],
    ),
    (
        10,
        &[
            "H=ABCG J=BCDE K=ACDF",
            "G=BCDF H=ACDF J=ABDE K=ABCE",
            "F=ABCD G=ABCE H=ABDE J=ACDE K=BCDE",
            "E=ABC F=BCD G=ACD H=ABD J=ABCD K=AB",
        ],
    ),
    (
        11,
        &[
            "H=ABCG J=BCDE K=ACDF L=ABCDEFG",
            "G=CDE H=ABCD J=ABF K=BDEF L=ADEF",
            "F=ABC G=BCD H=CDE J=ACD K=ADE L=BDE",
            "E=ABC F=BCD G=ACD H=ABD J=ABCD K=AB L=AC",
        ],
    ),
];

/// First rows of Plackett and Burman's designs.
const SCREENS: &[&str] = &["++-+++---+-", "++--++++-+-+----++-", "+++++-+-++--++--+-+----"];

/// How the runs of a design are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// All combinations of levels.
    Full,
    /// A regular fraction of them: effects are aliased fully or not at all.
    Fractional,
    /// Plackett–Burman: main effects in few runs, each aliased in part with many interactions.
    Screening,
}

/// A design: its runs, and how they were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TwoLevel {
    /// How the runs are chosen.
    pub family: Family,
    /// Number of factors.
    pub factors: usize,
    /// The runs of one block in standard order, with a level for each factor.
    pub runs: Vec<Vec<bool>>,
    /// Factors that are products of others, as in `(3, [0, 1, 2])` for D=ABC. Of fractions only.
    pub generators: Vec<(usize, Vec<usize>)>,
    /// All products of factors that are constant over the runs. Of fractions only.
    pub defining: Vec<Vec<usize>>,
    /// Length of the shortest product that is constant: at III main effects are aliased with two-factor interactions, at IV
    /// these with each other, at V neither. Screening designs have III; a full factorial has none.
    pub resolution: Option<usize>,
}

/// An effect that cannot be distinguished from another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Alias {
    /// Its factors.
    pub factors: Vec<usize>,
    /// The share of it that is added to the other: ±1 in fractions, less in screening designs.
    pub weight: f64,
}

impl TwoLevel {
    /// All combinations; the first factor changes fastest.
    ///
    /// # Errors
    /// No factor, or more than [`MOST_OF_FULL`].
    pub fn full(factors: usize) -> Result<Self, Error> {
        if !(1..=MOST_OF_FULL).contains(&factors) {
            return Err(refuse("a full factorial", factors, 1, MOST_OF_FULL));
        }
        Ok(Self {
            family: Family::Full,
            factors,
            runs: combinations(factors),
            generators: Vec::new(),
            defining: Vec::new(),
            resolution: None,
        })
    }

    /// A fraction with this many runs; by default the smallest one with resolution IV or more, for three factors the
    /// only one.
    ///
    /// # Errors
    /// There is none for this many factors, or none with this many runs.
    pub fn fractional(factors: usize, runs: Option<usize>) -> Result<Self, Error> {
        let Some((_, fractions)) = FRACTIONS.iter().find(|(of, _)| *of == factors) else {
            return Err(refuse("a fraction", factors, 3, MOST_OF_FRACTION));
        };
        let designs: Vec<Self> = fractions.iter().map(|generators| fraction(factors, generators)).collect();
        let sizes: Vec<String> = designs.iter().map(|design| design.runs.len().to_string()).collect();
        let wanted = |design: &&Self| match runs {
            Some(runs) => design.runs.len() == runs,
            None => design.resolution >= Some(4) || factors == 3,
        };
        // The one with the fewest runs comes last.
        designs.iter().rev().find(wanted).cloned().ok_or_else(|| {
            let sizes = sizes.join(", ");
            Error::Design(format!(
                "a fraction of {factors} factors has {sizes} runs, not {}",
                runs.unwrap_or(0)
            ))
        })
    }

    /// A Plackett–Burman design with this many runs; by default the smallest one for the factors.
    ///
    /// # Errors
    /// Fewer than two factors, more than the runs permit, or a number of runs other than 12, 20 and 24.
    pub fn screening(factors: usize, runs: Option<usize>) -> Result<Self, Error> {
        if !(2..=MOST_OF_SCREENING).contains(&factors) {
            return Err(refuse("a screening design", factors, 2, MOST_OF_SCREENING));
        }
        let first = SCREENS
            .iter()
            .find(|first| first.len() >= factors && runs.is_none_or(|runs| runs == first.len() + 1))
            .ok_or_else(|| {
                let runs = runs.unwrap_or(0);
                let sizes = "12 runs for up to 11, 20 for up to 19, 24 for up to 23";
                Error::Design(format!(
                    "a screening design of {factors} factors cannot have {runs} runs: {sizes}"
                ))
            })?;
        let row: Vec<bool> = first.bytes().map(|sign| sign == b'+').collect();
        let shifted = |by: usize| (0..factors).map(|f| row[(f + row.len() - by) % row.len()]).collect();
        let mut all: Vec<Vec<bool>> = (0..row.len()).map(shifted).collect();
        all.push(vec![false; factors]);
        Ok(Self {
            family: Family::Screening,
            factors,
            runs: all,
            generators: Vec::new(),
            defining: Vec::new(),
            resolution: Some(3),
        })
    }

    /// The effects that the design estimates: all main effects and, except in screening designs, the two-factor interactions,
    /// of aliased ones the first.
    pub fn effects(&self) -> Vec<Vec<usize>> {
        let mut effects = products(self.factors, 1, 1);
        if self.family == Family::Screening {
            return effects;
        }
        for pair in products(self.factors, 2, 2) {
            if effects.iter().all(|effect| self.correlation(effect, &pair) == 0.0) {
                effects.push(pair);
            }
        }
        effects
    }

    /// The effects of up to `most_factors` factors that are aliased with an effect, those of fewest factors first.
    pub fn aliases(&self, effect: &[usize], most_factors: usize) -> Vec<Alias> {
        let others = products(self.factors, 1, most_factors).into_iter().filter(|other| other != effect);
        others
            .map(|factors| Alias { weight: self.correlation(effect, &factors), factors })
            .filter(|alias| alias.weight != 0.0)
            .collect()
    }

    /// Mean over the runs of the product of two effects' signs: 0 where they are orthogonal, ±1 where they are the same.
    fn correlation(&self, a: &[usize], b: &[usize]) -> f64 {
        let product = |run: &Vec<bool>| sign(run, a) * sign(run, b);
        let sum: i32 = self.runs.iter().map(product).sum();
        f64::from(sum) / self.runs.len() as f64
    }
}

/// −1 or +1: the product of the factors' levels in a run.
fn sign(run: &[bool], factors: &[usize]) -> i32 {
    let low = factors.iter().filter(|f| !run[**f]).count();
    if low % 2 == 0 { 1 } else { -1 }
}

/// All sets of `fewest` to `most` factors, the smallest first.
pub fn products(factors: usize, fewest: usize, most: usize) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    let mut all: Vec<Vec<usize>> = Vec::new();
    for size in 1..=most.min(factors) {
        let longer = |set: &Vec<usize>| {
            let next = set.last().map_or(0, |last| last + 1);
            let set = set.clone();
            (next..factors).map(move |factor| [set.as_slice(), &[factor]].concat()).collect::<Vec<_>>()
        };
        sets = sets.iter().flat_map(longer).collect();
        if size >= fewest {
            all.extend(sets.iter().cloned());
        }
    }
    all
}

/// An effect as letters, as in `AB`; `I` for the mean.
pub fn letters(factors: &[usize]) -> String {
    if factors.is_empty() {
        return "I".to_owned();
    }
    factors.iter().map(|factor| LETTERS.get(*factor).map_or('?', |letter| char::from(*letter))).collect()
}

fn refuse(what: &str, factors: usize, fewest: usize, most: usize) -> Error {
    Error::Design(format!("{what} has {fewest} to {most} factors, not {factors}"))
}

fn combinations(factors: usize) -> Vec<Vec<bool>> {
    (0..1usize << factors).map(|run| (0..factors).map(|f| run >> f & 1 == 1).collect()).collect()
}

/// The fraction of a list of generators, as in `D=AB E=AC`.
fn fraction(factors: usize, generators: &str) -> TwoLevel {
    let number = |letter: u8| LETTERS.iter().position(|l| *l == letter).unwrap_or(0);
    let generators: Vec<(usize, Vec<usize>)> = generators
        .split(' ')
        .map(|generator| {
            let mut letters = generator.bytes().filter(|byte| *byte != b'=').map(number);
            (letters.next().unwrap_or(0), letters.collect())
        })
        .collect();
    let mut runs = combinations(factors - generators.len());
    for run in &mut runs {
        // Generators stand in the order of their factors, and are products of the first factors only.
        for (_, of) in &generators {
            let level = sign(run, of) == 1;
            run.push(level);
        }
    }
    let words: Vec<BTreeSet<usize>> =
        generators.iter().map(|(factor, of)| of.iter().chain([factor]).copied().collect()).collect();
    // The product of words: what stands in an odd number of them.
    let product = |set: &Vec<usize>| {
        let mut odd = BTreeSet::new();
        for word in set.iter().map(|i| &words[*i]) {
            odd = &odd ^ word;
        }
        odd.into_iter().collect::<Vec<usize>>()
    };
    let mut defining: Vec<Vec<usize>> = products(words.len(), 1, words.len()).iter().map(product).collect();
    defining.sort_by_key(|word| (word.len(), word.clone()));
    let resolution = defining.first().map(Vec::len);
    TwoLevel { family: Family::Fractional, factors, runs, generators, defining, resolution }
}

#[cfg(test)]
mod tests;
