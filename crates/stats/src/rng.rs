//! A small deterministic random generator: xoshiro256++ seeded through SplitMix64.
//!
//! The same seed gives the same numbers on every machine and in every version of mydyno; data sets and streams of operations
//! depend on this, so the golden vectors below must never change. Not for secrets.
//!
//! Sources: Blackman and Vigna, *Scrambled linear pseudorandom number generators* (2021); Steele, Lea and Flood,
//! *Fast splittable pseudorandom number generators* (2014); Lemire, *Fast random integer generation in an
//! interval* (2019).

/// 2^64 divided by the golden ratio, odd: SplitMix64's increment.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64: 64 bits of state, one output per step. It seeds [`Rng`] and is used where a single number is needed.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator whose state is `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }
}

/// SplitMix64's finaliser: a bijection that spreads every input bit over the output.
#[inline]
pub fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// xoshiro256++: 256 bits of state, period 2^256 − 1.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
    /// The second value of a pair of normals, kept for the next call.
    spare_normal: Option<f64>,
}

impl Rng {
    /// Creates a generator from a seed. Any seed is valid, including 0.
    pub fn from_seed(seed: u64) -> Self {
        let mut seeder = SplitMix64::new(seed);
        let state = std::array::from_fn(|_| seeder.next_u64());
        Self { state, spare_normal: None }
    }

    /// An independent stream of a seed, identified by labels, as in `stream(seed, &[TABLE, worker, connection])`. Streams with
    /// different labels, or labels in different order or number, are statistically independent.
    pub fn stream(seed: u64, labels: &[u64]) -> Self {
        let start = mix(seed.wrapping_add(GOLDEN));
        let hash = labels.iter().fold(start, |hash, label| {
            mix(hash.rotate_left(23).wrapping_mul(GOLDEN) ^ mix(label.wrapping_add(GOLDEN)))
        });
        Self::from_seed(hash)
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A uniformly distributed whole number in `0..n` (Lemire's method: no bias, and rarely a division). 0 for `n` = 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A uniformly distributed whole number in `low..=high`. `low` when `high` is not above it.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.saturating_sub(low).checked_add(1) {
            Some(span) => low + self.below(span),
            None => self.next_u64(),
        }
    }

    /// A number in [0, 1) with 53 random bits.
    #[inline]
    pub fn f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// A standard normal number (Marsaglia's polar method).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        loop {
            let (u, v) = (2.0 * self.f64() - 1.0, 2.0 * self.f64() - 1.0);
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                let scale = (-2.0 * s.ln() / s).sqrt();
                self.spare_normal = Some(v * scale);
                return u * scale;
            }
        }
    }

    /// An exponential number with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        // 1 − u lies in (0, 1], so the logarithm is finite.
        -(1.0 - self.f64()).ln()
    }

    /// Shuffles a slice, with all orders equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn splitmix64_gives_the_published_numbers() {
        let mut rng = SplitMix64::new(1_234_567);
        let first: [u64; 5] = std::array::from_fn(|_| rng.next_u64());
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(first, published);
    }

    #[test]
    fn xoshiro256_plus_plus_gives_the_published_numbers() {
        let mut rng = Rng { state: [1, 2, 3, 4], spare_normal: None };
        let first: [u64; 10] = std::array::from_fn(|_| rng.next_u64());
        let published = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
            14_011_001_112_246_962_877,
            12_406_186_145_184_390_807,
            15_849_039_046_786_891_736,
            10_450_023_813_501_588_000,
        ];
        assert_eq!(first, published);
    }

    #[test]
    fn seeds_and_streams_keep_their_numbers_from_version_to_version() {
        let first3 = |mut rng: Rng| -> [u64; 3] { std::array::from_fn(|_| rng.next_u64()) };
        assert_eq!(first3(Rng::from_seed(0)), GOLDEN_SEED_0);
        assert_eq!(first3(Rng::stream(42, &[])), GOLDEN_STREAM_42);
        assert_eq!(first3(Rng::stream(42, &[1, 2])), GOLDEN_STREAM_42_1_2);
    }

    const GOLDEN_SEED_0: [u64; 3] =
        [5_987_356_902_031_041_503, 7_051_070_477_665_621_255, 6_633_766_593_972_829_180];
    const GOLDEN_STREAM_42: [u64; 3] =
        [12_343_323_003_495_711_280, 1_641_377_365_623_878_930, 16_068_605_123_119_461_831];
    const GOLDEN_STREAM_42_1_2: [u64; 3] =
        [11_455_556_697_026_613_284, 12_217_671_192_710_052_645, 9_484_821_260_522_695_305];

    #[test]
    fn streams_differ_by_label_order_and_number_of_labels() {
        let labels: [&[u64]; 9] =
            [&[], &[0], &[1], &[0, 0], &[0, 1], &[1, 0], &[1, 1], &[0, 0, 0], &[u64::MAX]];
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            for labels in labels {
                assert!(seen.insert(Rng::stream(seed, labels).next_u64()), "seed {seed}, labels {labels:?}");
            }
        }
    }

    #[test]
    fn bounded_numbers_are_equally_likely() {
        // Chi-squared over 7 cells, 6 degrees of freedom: a correct generator stays below 27.9 with probability 99.99 %.
        let mut rng = Rng::from_seed(7);
        let mut cells = [0f64; 7];
        for _ in 0..70_000 {
            cells[rng.below(7) as usize] += 1.0;
        }
        let chi2: f64 = cells.iter().map(|c| (c - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi2 < 27.9, "chi² {chi2}");
    }

    #[test]
    fn a_range_that_just_misses_a_power_of_two_is_not_biased() {
        // With 3·2^62 values a plain multiplication gives the first of three thirds too often: 1/2 instead of 1/3.
        let mut rng = Rng::from_seed(11);
        let n = 3u64 << 62;
        let low = (0..30_000).filter(|_| rng.below(n) < 1 << 62).count();
        assert!((9_600..10_400).contains(&low), "{low} of 30000 in the lowest third");
    }

    #[test]
    fn normals_and_exponentials_have_their_moments() {
        let mut rng = Rng::from_seed(3);
        let n = 200_000;
        let normals: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let moment = |k: i32| normals.iter().map(|x| x.powi(k)).sum::<f64>() / f64::from(n);
        assert!(moment(1).abs() < 0.01 && (moment(2) - 1.0).abs() < 0.02, "{} {}", moment(1), moment(2));
        assert!(moment(3).abs() < 0.04 && (moment(4) - 3.0).abs() < 0.12, "{} {}", moment(3), moment(4));
        let mean = (0..n).map(|_| rng.exponential()).sum::<f64>() / f64::from(n);
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }

    proptest! {
        #[test]
        fn numbers_stay_in_their_bounds(seed: u64, n in 1u64.., low: u64, high: u64) {
            let mut rng = Rng::from_seed(seed);
            prop_assert!(rng.below(n) < n);
            let x = rng.f64();
            prop_assert!((0.0..1.0).contains(&x));
            let (low, high) = (low.min(high), low.max(high));
            prop_assert!((low..=high).contains(&rng.between(low, high)));
        }

        #[test]
        fn a_shuffle_keeps_every_item(seed: u64, mut items: Vec<u8>) {
            let mut shuffled = items.clone();
            Rng::from_seed(seed).shuffle(&mut shuffled);
            items.sort_unstable();
            shuffled.sort_unstable();
            prop_assert_eq!(items, shuffled);
        }
    }
}
