"""Writes stats.json: known answers from numpy, scipy and statsmodels for the functions of crates/stats."""
import itertools
import json
import math
import pathlib

import numpy as np
import scipy
import statsmodels
import statsmodels.api as sm
from scipy import integrate, optimize, special, stats
from statsmodels.regression.linear_model import burg
from statsmodels.stats.multitest import multipletests

rng = np.random.default_rng(20261121)
out = {"made_with": {"numpy": np.__version__, "scipy": scipy.__version__, "statsmodels": statsmodels.__version__}}


def plain(value):
    """JSON numbers; what is not finite becomes null."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, (np.integer, int)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, (np.floating, float)):
        return float(value) if math.isfinite(value) else None
    return value


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

# Autoregressions by Burg's method, order by order.
series = []
for phi, n in [((0.6,), 60), ((0.5, 0.3), 120), ((-0.4,), 40), ((0.9,), 300)]:
    x = np.zeros(n + 50)
    for t in range(len(phi), n + 50):
        x[t] = sum(c * x[t - 1 - i] for i, c in enumerate(phi)) + rng.normal()
    x = np.round(x[50:], 6)
    x -= x.mean()
    fits = [burg(x, order, demean=False)[0] for order in (1, 2, 3, 4)]
    series.append({"x": x, "fits": fits, "skewness": stats.skew(x, bias=False)})
out["burg"] = series

# Paired blocks on log ratios.
paired = []
for n, sd in [(2, 0.04), (5, 0.04), (12, 0.1), (40, 0.01)]:
    base = np.round(rng.lognormal(7, 0.2, n), 4)
    treat = np.round(base * np.exp(rng.normal(0.05, sd, n)), 4)
    test = stats.ttest_1samp(np.log(treat / base), 0)
    low, high = test.confidence_interval(0.95)
    ratio = math.exp(np.log(treat / base).mean())
    paired.append({"baseline": base, "treatment": treat, "ratio": ratio, "low": math.exp(low), "high": math.exp(high)})
out["paired"] = paired

# Bootstrap-t against scipy's own resampling of the studentised mean (a seeded simulation: compare loosely).
logs = np.round(rng.normal(0.05, 0.04, 15) - (rng.random(15) < 0.2) * 0.1, 6)
index = rng.integers(0, 15, (400_000, 15))
draws = logs[index]
sds = draws.std(axis=1, ddof=1)
ts = (draws.mean(axis=1) - logs.mean())[sds > 0] / (sds[sds > 0] / math.sqrt(15))
q_low, q_high = np.quantile(ts, [0.025, 0.975])
se = logs.std(ddof=1) / math.sqrt(15)
out["bootstrap_t"] = {
    "log_ratios": logs, "low": math.exp(logs.mean() - q_high * se), "high": math.exp(logs.mean() - q_low * se)
}

# Group-sequential boundaries (Lan-DeMets, O'Brien-Fleming): solved by multivariate normal probabilities.
def spent(t, alpha):
    return 4 * stats.norm.sf(stats.norm.ppf(1 - alpha / 4) / math.sqrt(t))


def lan_demets(times, alpha):
    bounds = []
    for k in range(len(times)):
        cov = np.array([[math.sqrt(min(a, b) / max(a, b)) for a in times[: k + 1]] for b in times[: k + 1]])

        def inside(z):
            upper = np.array(bounds + [z])
            if k == 0:
                return 2 * stats.norm.cdf(z) - 1
            return stats.multivariate_normal.cdf(
                upper, np.zeros(k + 1), cov, lower_limit=-upper, allow_singular=True,
                maxpts=400_000, abseps=1e-6, releps=1e-6, rng=np.random.default_rng(1),
            )

        bounds.append(optimize.brentq(lambda z: 1 - inside(z) - spent(times[k], alpha), 0.5, 9, xtol=1e-6))
    return bounds


out["boundaries"] = [
    {"times": times, "alpha": alpha, "bounds": lan_demets(times, alpha)}
    for times, alpha in [([1.0], 0.05), ([0.5, 1.0], 0.05), ([0.2, 0.4, 0.6, 0.8, 1.0], 0.05), ([0.3, 0.7, 1.0], 0.01)]
]

# Power and blocks needed.
def power(n, beyond, sd):
    return stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, beyond / sd * math.sqrt(n))


blocks = []
for beyond, sd in [(0.04, 0.04), (0.02, 0.04), (0.01, 0.04), (0.05, 0.01), (0.03, 0.06)]:
    n = 2
    while power(n, beyond, sd) < 0.8:
        n += 1
    blocks.append([beyond, sd, n])
out["blocks_for"] = blocks
out["minimum_detectable_effect"] = [
    [n, sd, math.expm1(optimize.brentq(lambda e: power(n, e, sd) - 0.8, 1e-6, 50 * sd, xtol=1e-14))]
    for n, sd in [(3, 0.04), (5, 0.04), (12, 0.04), (12, 0.01), (40, 0.1)]
]

# Least squares and factorial effects.
factorial = []
for factors, n_blocks, order in [(2, 3, 2), (3, 2, 2), (3, 4, 3)]:
    rows = []
    for block in range(n_blocks):
        shift = rng.normal(0, 0.1)
        for levels in itertools.product([0, 1], repeat=factors):
            signs = [2 * l - 1 for l in levels]
            mean = 7 + shift + 0.05 * signs[0] - 0.02 * signs[1] + 0.03 * signs[0] * signs[1]
            rows.append((block, levels, round(math.exp(mean + rng.normal(0, 0.03)), 6)))
    terms = [t for size in range(1, order + 1) for t in itertools.combinations(range(factors), size)]
    x = np.array([
        [float(b == k) for k in range(n_blocks)] + [math.prod(2 * levels[f] - 1 for f in t) for t in terms]
        for b, levels, _ in rows
    ])
    fit = sm.OLS(np.log([r[2] for r in rows]), x).fit()
    ci = fit.conf_int(0.05)
    holm = multipletests(fit.pvalues[n_blocks:], method="holm")[1]
    factorial.append({
        "order": order,
        "rows": [{"block": b, "levels": list(levels), "response": y} for b, levels, y in rows],
        "effects": [
            {
                "factors": list(t), "ratio": math.exp(2 * fit.params[n_blocks + i]),
                "low": math.exp(2 * ci[n_blocks + i][0]), "high": math.exp(2 * ci[n_blocks + i][1]),
                "p_adjusted": holm[i],
            }
            for i, t in enumerate(terms)
        ],
    })
out["factorial"] = factorial
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


sweeps = []
for lam, sigma, kappa, noise in [(1000, 0.05, 0.001, 0.02), (5000, 0.2, 0.0002, 0.01), (800, 0.01, 0.02, 0.03)]:
    n = np.array([1, 2, 4, 8, 16, 32, 64, 128], float)
    x = np.round(usl(n, lam, sigma, kappa) * np.exp(rng.normal(0, noise, len(n))), 3)

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
    sweeps.append({"n": n, "x": x, "law": best.x, "squares": squares, "intervals": intervals})
out["usl"] = sweeps

# Quantiles of a histogram's values: the exact ones, by the inverse of the empirical distribution.
values = np.round(rng.lognormal(12, 1, 2000)).astype(int)
qs = [0.001, 0.25, 0.5, 0.9, 0.99, 0.999]
out["quantiles"] = {"values": values, "qs": qs, "exact": np.quantile(values, qs, method="inverted_cdf")}

path = pathlib.Path(__file__).with_name("stats.json")
path.write_text(json.dumps(plain(out), separators=(",", ":")) + "\n")
