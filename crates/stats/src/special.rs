//! Special functions and the distributions derived from them. Double precision; checked against scipy in tests/oracle.
//!
//! Sources: Press et al., *Numerical Recipes* (3rd ed.), ch. 6 for the methods (series, continued fractions by Lentz);
//! Lanczos's coefficients for g = 7 by Godfrey; Wichura, *Algorithm AS 241* (1988) for the normal quantile.

use std::f64::consts::PI;

const TINY: f64 = 1e-300;

/// ln Γ(x) for x > 0.
pub fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (PI / (PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + G + 0.5;
    let series = C[1..].iter().enumerate().fold(C[0], |sum, (i, c)| sum + c / (x + i as f64 + 1.0));
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + series.ln()
}

/// The regularised incomplete beta function I_x(a, b): a, b > 0, x in 0 … 1.
pub fn beta_inc(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The continued fraction converges fast on the near side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    h
}

/// The regularised upper incomplete gamma function Q(a, x): a > 0, x ≥ 0.
pub fn gamma_q(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        for _ in 0..100_000 {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        return 1.0 - front * sum;
    }
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / guard(b);
    let mut h = d;
    for i in 1..100_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / guard(an * d + b);
        c = guard(b + an / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    front * h
}

/// The standard normal distribution function (Hart 1968, algorithm 5666, as given by West 2005).
pub fn normal_cdf(x: f64) -> f64 {
    const UPPER: [f64; 7] = [
        220.206_867_912_376,
        221.213_596_169_931,
        112.079_291_497_871,
        33.912_866_078_383,
        6.373_962_203_531_65,
        0.700_383_064_443_688,
        3.526_249_659_989_11e-2,
    ];
    const LOWER: [f64; 8] = [
        440.413_735_824_752,
        793.826_512_519_948,
        637.333_633_378_831,
        296.564_248_779_674,
        86.780_732_202_946_1,
        16.064_177_579_207,
        1.755_667_163_182_64,
        8.838_834_764_831_84e-2,
    ];
    let z = x.abs();
    let exponential = (-0.5 * z * z).exp();
    let tail = if z < 7.071_067_811_865_47 {
        exponential * polynomial(&UPPER, z) / polynomial(&LOWER, z)
    } else {
        let fraction = (1..=20).rev().fold(z + 1.0, |rest, k| z + f64::from(k) / rest);
        exponential / (fraction * (2.0 * PI).sqrt())
    };
    if x > 0.0 { 1.0 - tail } else { tail }
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// The standard normal quantile; ±∞ at 1 and 0.
pub fn normal_quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(&AS241_A, r) / polynomial(&AS241_B, r);
    }
    let r = (-if q < 0.0 { p } else { 1.0 - p }.ln()).sqrt();
    let magnitude = if r <= 5.0 {
        polynomial(&AS241_C, r - 1.6) / polynomial(&AS241_D, r - 1.6)
    } else {
        polynomial(&AS241_E, r - 5.0) / polynomial(&AS241_F, r - 5.0)
    };
    if q < 0.0 { -magnitude } else { magnitude }
}

const AS241_A: [f64; 8] = [
    3.387_132_872_796_366_5,
    133.141_667_891_784_38,
    1_971.590_950_306_551_3,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const AS241_B: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_545,
];
const AS241_C: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    7.745_450_142_783_414e-4,
];
const AS241_D: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];
const AS241_E: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    0.296_560_571_828_504_87,
    0.026_532_189_526_576_124,
    0.001_242_660_947_388_078_4,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
const AS241_F: [f64; 8] = [
    1.0,
    0.599_832_206_555_888,
    0.136_929_880_922_735_8,
    0.014_875_361_290_850_615,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_8e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

/// P(T > x) of Student's t with `df` degrees of freedom (need not be whole).
pub fn t_sf(x: f64, df: f64) -> f64 {
    if df.is_infinite() {
        return normal_cdf(-x);
    }
    let tail = 0.5 * beta_inc(0.5 * df, 0.5, df / (df + x * x));
    if x >= 0.0 { tail } else { 1.0 - tail }
}

/// The quantile of Student's t with `df` degrees of freedom; ±∞ at 1 and 0.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 || df.is_infinite() {
        return normal_quantile(p);
    }
    let tail = p.min(1.0 - p);
    // On the right the survival function is convex and falling, and the normal quantile lies left of the root (for
    // tails below a half), so Newton's steps approach it from the left without ever passing it.
    let ln_norm = ln_gamma(0.5 * (df + 1.0)) - ln_gamma(0.5 * df) - 0.5 * (df * PI).ln();
    let mut x = -normal_quantile(tail);
    for _ in 0..200 {
        let density = (ln_norm - 0.5 * (df + 1.0) * (x * x / df).ln_1p()).exp();
        let step = (t_sf(x, df) - tail) / density;
        x += step;
        if step.abs() <= 1e-15 * x.abs() || !step.is_finite() {
            break;
        }
    }
    if p < 0.5 { -x } else { x }
}

/// P(X > x) of the chi-squared distribution.
pub fn chi2_sf(x: f64, df: f64) -> f64 {
    gamma_q(0.5 * df, 0.5 * x)
}

/// P(X > x) of the F distribution.
pub fn f_sf(x: f64, df1: f64, df2: f64) -> f64 {
    if x <= 0.0 { 1.0 } else { beta_inc(0.5 * df2, 0.5 * df1, df2 / (df2 + df1 * x)) }
}

/// P(K > x) of Kolmogorov's limiting distribution.
pub fn kolmogorov_sf(x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    if x < 1.0 {
        // Jacobi's transform of the series below converges where that series does not.
        let cdf: f64 = (0..20)
            .map(|k| {
                let odd = f64::from(2 * k + 1);
                (-(odd * PI).powi(2) / (8.0 * x * x)).exp()
            })
            .sum();
        return (1.0 - (2.0 * PI).sqrt() / x * cdf).clamp(0.0, 1.0);
    }
    let sum: f64 = (1..100)
        .map(|k| {
            let k = f64::from(k);
            let sign = if k % 2.0 == 1.0 { 1.0 } else { -1.0 };
            sign * (-2.0 * k * k * x * x).exp()
        })
        .sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

/// The point between `low` and `high` where `below` turns from true to false.
pub(crate) fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}
