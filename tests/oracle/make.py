"""Writes stats.json: known answers from numpy, scipy and statsmodels for distributions, samples, fits and histograms."""
import itertools
import math

import numpy as np
import statsmodels.api as sm
from scipy import optimize, special, stats

import answers

rng = np.random.default_rng(20261121)
out = {"made_with": answers.MADE_WITH}

# Special functions and distributions.
out["ln_gamma"] = [[x, special.gammaln(x)] for x in [1e-3, 0.1, 0.5, 1, 1.5, 2, 3.7, 10, 55.5, 170, 1e4, 1e7]]
out["beta_inc"] = [
    [a, b, x, special.betainc(a, b, x)]
    for a, b, x in itertools.product([0.5, 1, 2.5, 30, 400], [0.5, 1, 7, 90], [0.001, 0.1, 0.5, 0.83, 0.999])
]
out["gamma_q"] = [
    [a, x, special.gammaincc(a, x)] for a, x in itertools.product([0.5, 1, 3.3, 20, 250], [0.01, 0.5, 2, 19, 260])
]
out["normal_cdf"] = [[x, stats.norm.cdf(x)] for x in [-12, -7.2, -5, -1.96, -0.3, 0, 0.3, 1, 1.96, 5, 7]]
out["normal_quantile"] = [
    [p, stats.norm.ppf(p)] for p in [1e-12, 1e-6, 1e-3, 0.025, 0.075, 0.2, 0.5, 0.7, 0.9, 0.975, 0.9999, 1 - 1e-9]
]
out["t_sf"] = [[x, df, stats.t.sf(x, df)] for x, df in itertools.product([-3, 0, 0.5, 2, 9], [1, 2.5, 11, 60, 1e5])]
out["t_quantile"] = [
    [p, df, stats.t.ppf(p, df)]
    for p, df in itertools.product([1e-5, 0.025, 0.4, 0.5, 0.8, 0.975, 0.9999], [1, 1.3, 3, 11, 59.5, 1000])
]
out["chi2_sf"] = [[x, df, stats.chi2.sf(x, df)] for x, df in itertools.product([0.1, 1, 8, 60], [1, 4, 33])]
out["f_sf"] = [
    [x, a, b, stats.f.sf(x, a, b)] for x, a, b in itertools.product([0.2, 1, 3.7, 40], [1, 3, 12], [2, 11, 80])
]
out["kolmogorov_sf"] = [[x, special.kolmogorov(x)] for x in [0.2, 0.5, 0.8, 0.99, 1.0, 1.36, 2, 3]]
out["noncentral_t_sf"] = [
    [x, df, nc, stats.nct.sf(x, df, nc)]
    for x, df, nc in itertools.product([0, 1.5, 2.2, 4.3], [1, 4, 11, 40, 199], [0, 1, 2.8, 5])
]

# One and two samples.
shapes = {
    "normal": lambda n: rng.normal(10, 2, n),
    "heavy tails": lambda n: rng.standard_t(2, n),
    "log-normal": lambda n: rng.lognormal(0, 1, n),
    "ties": lambda n: rng.integers(0, 5, n).astype(float),
    "constant": lambda n: np.full(n, 3.0),
}
samples = []
for (name_a, a), (name_b, b) in itertools.product(shapes.items(), shapes.items()):
    for na, nb in [(5, 7), (12, 12), (40, 25), (150, 130)]:
        xa, xb = np.round(a(na), 6), np.round(b(nb), 6)
        case = {"name": f"{name_a} {na}, {name_b} {nb}", "a": xa, "b": xb}
        if not (np.ptp(xa) == 0 and np.ptp(xb) == 0):
            welch = stats.ttest_ind(xb, xa, equal_var=False)
            low, high = welch.confidence_interval(0.95)
            case["welch"] = {"t": welch.statistic, "df": welch.df, "p": welch.pvalue, "low": low, "high": high}
            ties = len(np.unique(np.concatenate([xa, xb]))) < na + nb
            exact = not ties and min(na, nb) <= 8
            mw = stats.mannwhitneyu(xa, xb, method="exact" if exact else "asymptotic")
            case["mann_whitney"] = {"u": mw.statistic, "p": mw.pvalue}
        exact = na * nb <= 10_000
        ks = stats.ks_2samp(xa, xb, method="exact" if exact else "asymp")
        case["ks"] = {"d": ks.statistic, "p": ks.pvalue, "exact": exact}
        samples.append(case)
out["two_samples"] = samples

# Least squares.
x = np.round(rng.normal(size=(12, 3)), 6)
y = np.round(rng.normal(size=12), 6)
big, small = sm.OLS(y, x).fit(), sm.OLS(y, x[:, :2]).fit()
out["least_squares"] = {
    "x": x, "y": y, "coefficients": big.params, "standard_errors": big.bse, "p_values": big.pvalues,
    "against_two_columns": big.compare_f_test(small)[1],
}


# The Universal Scalability Law.
def usl(n, lam, sigma, kappa):
    return lam * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def fit_usl(n, x):
    """The law of least relative squares with profile intervals of λ, σ, κ."""

    def residuals(p):
        return usl(n, *p) / x - 1

    def fit_fixed(index, value, start):
        free = [i for i in range(3) if i != index]

        def f(q):
            p = np.zeros(3)
            p[index] = value
            p[free] = q
            return residuals(p)

        r = optimize.least_squares(f, np.array(start)[free], bounds=([0, 0], [np.inf, np.inf]), x_scale=np.maximum(np.array(start)[free], 1e-4), xtol=1e-14, ftol=1e-14, gtol=1e-14)
        return 2 * r.cost

    best = optimize.least_squares(residuals, [x[0], 0.1, 0.001], bounds=([0, 0, 0], [np.inf] * 3), x_scale=[x[0], 0.1, 0.001], xtol=1e-15, ftol=1e-15, gtol=1e-15)
    squares, df = 2 * best.cost, len(n) - 3
    limit = squares * (1 + stats.t.ppf(0.975, df) ** 2 / df)
    intervals = []
    for index in range(3):
        value = best.x[index]
        over = lambda v: fit_fixed(index, v, best.x) - limit
        high = value
        while over(high) < 0:
            high = high * 1.3 + 1e-6
        upper = optimize.brentq(over, value, high, xtol=1e-10 * high)
        lowest = 0.0 if index else value * 1e-3
        lower = lowest if over(lowest) < 0 else optimize.brentq(over, lowest, value, xtol=1e-10 * value)
        intervals.append([lower, upper])
    return {"n": n, "x": x, "law": best.x, "squares": squares, "intervals": intervals}


def sweep(lam, sigma, kappa, noise):
    n = np.array([1, 2, 4, 8, 16, 32, 64, 128], float)
    return fit_usl(n, np.round(usl(n, lam, sigma, kappa) * np.exp(rng.normal(0, noise, len(n))), 3))


sweeps = [
    sweep(*law)
    for law in [(1000, 0.05, 0.001, 0.02), (5000, 0.2, 0.0002, 0.01), (800, 0.01, 0.02, 0.03)]
]
out["usl"] = sweeps

# Quantiles of a histogram's values: the exact ones, by the inverse of the empirical distribution.
values = np.round(rng.lognormal(12, 1, 2000)).astype(int)
qs = [0.001, 0.25, 0.5, 0.9, 0.99, 0.999]
out["quantiles"] = {"values": values, "qs": qs, "exact": np.quantile(values, qs, method="inverted_cdf")}

# Histograms: HdrHistogram's buckets for two significant digits, cut at the extremes, about the exact quantiles.
TOP = 2**42 - 1


def bucket(value):
    octave = max(min(value, TOP).bit_length() - 8, 0)
    low = min(value, TOP) >> octave << octave
    return low, 2**64 - 1 if low + (1 << octave) > TOP else low + (1 << octave) - 1


out["histograms"] = []
for name, recorded in {
    "one value": [5],
    "nothing but zero": [0, 0, 0],
    "constant": [1_000_003] * 40,
    "edges of octaves": [0, 1, 127, 128, 255, 256, 257, 511, 512, 513, 1023, 1024, 2**20 - 1, 2**20, 2**20 + 1, 2**41],
    "ties": list(rng.integers(200, 204, 500)),
    "two far apart": [3] * 99 + [10**9],
    "heavy tails": list(np.minimum(1e5 * (1 + rng.pareto(0.7, 1000)), 2.0**41).astype(int)),
    "longer than there are buckets for": [10**6] * 5 + [2**42 - 2, 2**42 - 1, 2**42, 2**43, 2**44],
}.items():
    recorded = sorted(int(v) for v in recorded)
    rows = []
    for q in [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0]:
        rank = max(math.ceil(q * len(recorded)), 1)
        exact = recorded[rank - 1]
        low, high = bucket(exact)
        rows.append([q, exact, max(low, recorded[0]), min(high, recorded[-1])])
    out["histograms"].append({
        "name": name, "values": recorded, "sum": sum(recorded), "quantiles": rows,
        "saturated": sum(v >= bucket(TOP)[0] for v in recorded),
    })

# Fits without a degree of freedom, of far scales and of ties.
out["least_squares_edges"] = []
for name, x, y in [
    ("one column", np.ones((7, 1)), rng.normal(5, 1, 7)),
    ("as many rows as columns", rng.normal(size=(3, 3)), rng.normal(size=3)),
    ("columns of far scales", rng.normal(size=(20, 3)) * [1e6, 1, 1e-6], rng.normal(size=20)),
    ("ties", rng.integers(0, 2, (16, 2)) + [[1, 0]], rng.integers(0, 3, 16)),
    ("heavy tails", rng.normal(size=(30, 2)), rng.standard_t(1.5, 30)),
]:
    x, y = np.round(x, 9), np.round(y, 6)
    case = {"name": name, "x": x, "y": y, "coefficients": np.linalg.lstsq(x, y, rcond=None)[0], "standard_errors": None}
    if len(x) > x.shape[1]:
        fit = sm.OLS(y, x).fit()
        case |= {"standard_errors": fit.bse, "p_values": fit.pvalues, "intervals": fit.conf_int(0.05)}
    out["least_squares_edges"].append(case)


# The law by its peak: κ = (1 − σ)/N*², and λ so that X(N*) = X*; profile intervals of N* and X*.
def peak_intervals(fit):
    n, x = fit["n"], fit["x"]
    lam, sigma, kappa = fit["law"]
    limit = fit["squares"] * (1 + stats.t.ppf(0.975, len(n) - 3) ** 2 / (len(n) - 3))
    at = math.sqrt((1 - sigma) / kappa)

    def least(residuals, starts, upper):
        fits = [
            optimize.least_squares(
                residuals, start, bounds=(np.zeros(2), upper), x_scale=np.maximum(start, 1e-6), xtol=1e-14, ftol=1e-14, gtol=1e-14
            )
            for start in starts
        ]
        return min(2 * fit.cost for fit in fits)

    def by_n(peak):
        return least(
            lambda p: usl(n, p[0], p[1], (1 - p[1]) / peak**2) / x - 1,
            [(lam, s) for s in (max(sigma, 1e-4), 0.01, 0.3)], [np.inf, 1.0],
        )

    def by_x(peak):
        def residuals(p):
            s, k = p
            most = math.sqrt((1 - s) / k)
            return usl(n, peak / usl(most, 1.0, s, k), s, k) / x - 1

        return least(residuals, [(s, k) for s in (max(sigma, 1e-4), 0.02, 0.2) for k in (kappa, 3 * kappa, kappa / 3)], [0.999, 1.0])

    intervals = []
    for value, cost in [(at, by_n), (usl(at, lam, sigma, kappa), by_x)]:
        over = lambda v: cost(v) - limit
        low = high = value
        while over(low) < 0:
            low /= 1.02
        while over(high) < 0:
            high *= 1.02
        intervals.append([value, optimize.brentq(over, low, value, xtol=1e-9 * value), optimize.brentq(over, value, high, xtol=1e-9 * value)])
    return intervals


out["usl_peaks"] = [{"n": fit["n"], "x": fit["x"], "peaks": peak_intervals(fit)} for fit in sweeps]
four = np.array([1, 4, 16, 64], float)
thrice = np.repeat([1, 2, 4, 8, 16, 32], 3).astype(float)
doubling = 2.0 ** np.arange(7)
out["usl_edges"] = [
    {"name": name, **fit_usl(n, np.round(x, 3))}
    for name, n, x in [
        ("four points", four, usl(four, 900, 0.1, 0.002) * np.exp(rng.normal(0, 0.001, 4))),
        ("each three times", thrice, usl(thrice, 700, 0.08, 0.003) * np.exp(rng.normal(0, 0.02, 18))),
        ("heavy tails", thrice, usl(thrice, 700, 0.08, 0.003) * np.exp(0.01 * rng.standard_t(2, 18))),
        ("no coherency", doubling, usl(doubling, 500, 0.1, 0.0) * np.exp(rng.normal(0, 0.01, 7))),
        ("no contention", doubling, usl(doubling, 500, 0.0, 0.004) * np.exp(rng.normal(0, 0.01, 7))),
        ("straight up", doubling, 500 * doubling * np.exp(rng.normal(0, 0.01, 7))),
        ("a plateau of ties", doubling, np.minimum(500 * doubling, 4000.0)),
    ]
]

answers.write("stats.json", out)
