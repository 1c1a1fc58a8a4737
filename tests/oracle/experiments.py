"""Writes experiments.json: known answers from numpy, scipy and statsmodels for what crates/stats says of experiments."""
import itertools
import math

import numpy as np
import statsmodels.api as sm
from scipy import optimize, stats
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.multitest import multipletests

import answers

rng = np.random.default_rng(20261123)
out = {"made_with": answers.MADE_WITH}

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
def power(n, beyond, sd, significance=0.05):
    return stats.nct.sf(stats.t.ppf(1 - significance / 2, n - 1), n - 1, beyond / sd * math.sqrt(n))


blocks = []
for beyond, sd in [(0.04, 0.04), (0.02, 0.04), (0.01, 0.04), (0.05, 0.01), (0.03, 0.06)]:
    n = 2
    while power(n, beyond, sd) < 0.8:
        n += 1
    blocks.append([beyond, sd, n])
out["blocks_for"] = blocks


def detectable(n, sd):
    return math.expm1(optimize.brentq(lambda e: power(n, e, sd) - 0.8, 1e-6 * sd, 50 * sd, xtol=1e-14))


out["minimum_detectable_effect"] = [
    [n, sd, detectable(n, sd)]
    for n, sd in [(3, 0.04), (5, 0.04), (12, 0.04), (12, 0.01), (40, 0.1)]
]

# Factorial effects.
def effects(rows, factors, n_blocks, order):
    """What statsmodels says of rows of block, levels and response."""
    terms = [t for size in range(1, order + 1) for t in itertools.combinations(range(factors), size)]
    x = np.array([
        [float(b == k) for k in range(n_blocks)] + [math.prod(2 * levels[f] - 1 for f in t) for t in terms]
        for b, levels, _ in rows
    ])
    fit = sm.OLS(np.log([r[2] for r in rows]), x).fit()
    ci = fit.conf_int(0.05)
    holm = multipletests(fit.pvalues[n_blocks:], method="holm")[1]
    return {
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
    }


def responses(factors, n_blocks, noise):
    rows = []
    for block in range(n_blocks):
        shift = rng.normal(0, 0.1)
        for levels in itertools.product([0, 1], repeat=factors):
            signs = [2 * l - 1 for l in levels]
            mean = 7 + shift + 0.05 * signs[0]
            if factors > 1:
                mean += -0.02 * signs[1] + 0.03 * signs[0] * signs[1]
            rows.append((block, levels, round(math.exp(mean + noise()), 6)))
    return rows


out["factorial"] = [
    effects(responses(factors, n_blocks, lambda: rng.normal(0, 0.03)), factors, n_blocks, order)
    for factors, n_blocks, order in [(2, 3, 2), (3, 2, 2), (3, 4, 3)]
]
# Log ratios of blocks, with edges; two runs side by side; what two alike blocks differ by.
out["log_effects"] = []
for name, logs in {
    "none": [],
    "one": [0.05],
    "two": [0.05, 0.02],
    "two alike": [0.05, 0.05],
    "constant": [0.1] * 12,
    "ties": [0.02, 0.02, 0.05, 0.02, 0.05, 0.05, 0.02, -0.01],
    "heavy tails": np.round(0.05 * rng.standard_t(2, 15), 6),
    "an effect of a thousand times": np.round(rng.normal(math.log(1000), 0.2, 6), 6),
}.items():
    case = {"name": name, "log_ratios": logs, "ratio": math.exp(np.mean(logs)) if len(logs) else 1.0, "low": None, "high": None}
    if len(logs) > 1 and np.ptp(logs) > 0:
        interval = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
        case |= {"low": math.exp(interval.low), "high": math.exp(interval.high)}
    out["log_effects"].append(case)

out["noise_floor"] = [
    {
        "log_ratios": logs,
        "floor": None if len(logs) < 4 or not np.any(logs)
        else math.expm1(stats.t.ppf(0.975, len(logs)) * math.sqrt(np.mean(np.square(logs)))),
    }
    for logs in [
        [], [0.01] * 3, [0.0] * 6, [0.01] * 4, [0.01, -0.01, 0.0, 0.0], np.round(rng.normal(0, 0.03, 12), 6),
        np.round(0.03 * rng.standard_t(2, 20), 6),
    ]
]

# Donner and Zou (2012), on the logarithm: the distance of each estimate from its own ends, put together at right angles.
out["ratio_of_estimates"] = []
for a, b in [
    ((100, 95, 105, 0.95), (110, 105, 115, 0.95)),
    ((100, 99.9, 130, 0.95), (40, 20, 41, 0.95)),
    ((5, 5, 5, 0.95), (7, 6, 9, 0.95)),
    ((1e-3, 5e-4, 4e-3, 0.9), (1e3, 9e2, 2e3, 0.95)),
    ((100, 95, 105, None), (110, 105, 115, 0.95)),
    ((100, 95, 105, 0.95), (110, 105, 115, None)),
    ((100, None, None, None), (110, 105, 115, 0.95)),
    ((100, 95, 105, 0.95), (110, None, None, None)),
    ((100, 0, 205, 0.95), (110, 105, 115, 0.95)),
    ((100, 95, 105, 0.95), (110, -1, 215, 0.95)),
    ((0, 0, 0, 0.95), (110, 105, 115, 0.95)),
    ((100, 95, 105, 0.95), (0, 0, 3, 0.95)),
]:
    case = {"a": a, "b": b, "ratio": b[0] / a[0] if a[0] else None, "low": None, "high": None, "level": None}
    if all(end is not None and end > 0 for end in a[:3] + b[:3]):
        (av, al, ah, level_a), (bv, bl, bh, level_b) = a, b
        down = np.linalg.norm([math.log(bv) - math.log(bl), math.log(ah) - math.log(av)])
        up = np.linalg.norm([math.log(bh) - math.log(bv), math.log(av) - math.log(al)])
        case |= {"low": bv / av * math.exp(-down), "high": bv / av * math.exp(up)}
        case["level"] = None if level_a is None or level_b is None else min(level_a, level_b)
    out["ratio_of_estimates"].append(case)

# The bootstrap-t without chance: every resample of so few blocks, with its probability. A resampling of 4,999 hits the
# quantile wanted up to four standard errors of its share.
out["bootstrap_exact"] = []
for name, logs in {
    "eight": rng.normal(0.05, 0.04, 8),
    "one far off": np.append(rng.normal(0.05, 0.02, 7), -0.3),
    "ties": [0.02, 0.02, 0.05, 0.02, 0.05, 0.05, 0.02, -0.01, 0.05],
    "heavy tails": 0.05 * rng.standard_t(2, 9),
}.items():
    logs = np.round(logs, 6)
    n = len(logs)
    ts, masses = [], []
    for chosen in itertools.combinations_with_replacement(range(n), n):
        sample = logs[list(chosen)]
        sd = sample.std(ddof=1)
        if sd > 1e-9:
            ts.append((sample.mean() - logs.mean()) / (sd / math.sqrt(n)))
            counts = np.bincount(chosen)
            masses.append(math.factorial(n) / math.prod(math.factorial(int(k)) for k in counts))
    order = np.argsort(ts)
    ts, through = np.array(ts)[order], np.cumsum(np.array(masses)[order]) / np.sum(masses)
    se = logs.std(ddof=1) / math.sqrt(n)

    def ends(q):
        slack = 4 * math.sqrt(q * (1 - q) / 4999)
        return [math.exp(logs.mean() - ts[np.searchsorted(through, p)] * se) for p in (q + slack, q - slack)]

    out["bootstrap_exact"].append({"name": name, "log_ratios": logs, "low": ends(0.975), "high": ends(0.025)})

# Verdicts from their definition.
def threshold(direction, delta):
    return 1 + delta if direction == "higher" else 1 / (1 + delta)


def verdict(direction, delta, low, high):
    if low is None:
        return "undecided"
    least = threshold(direction, delta)
    supported, refuted = (low > least, high < least) if direction == "higher" else (high < least, low > least)
    return "supported" if supported else "refuted" if refuted else "undecided"


out["verdicts"] = [
    [direction, delta, low, high, verdict(direction, delta, low, high)]
    for direction, delta in itertools.product(["higher", "lower"], [0.0, 0.01, 0.25])
    for low, high in [
        (None, None), (1.0, 1.0), (0.9, 1.1), (1.0, 1.1), (0.9, 1.0), (1.01, 1.2), (1.02, 1.3), (1.25, 1.5), (1.26, 1.5),
        (1.002, 1.009), (0.5, 0.79), (0.5, 0.8), (0.8, 0.9), (0.85, 0.985), (0.9905, 0.999), (0.0, 10.0),
    ]
]


# Power and forecasts, with the blocks that are needed found by halving.
out["power"] = [
    [*question, power(*question)]
    for question in itertools.product([2, 5, 12, 60], [0.01, 0.05], [0.02, 0.1], [0.05, 0.001])
] + [
    # One block, no effect, the other way, no spread.
    [1, 0.05, 0.1, 0.05, 0.0], [12, 0.0, 0.1, 0.05, 0.0], [12, -0.05, 0.1, 0.05, 0.0], [12, 0.05, 0.0, 0.05, 1.0],
    [1, 0.05, 0.0, 0.05, 0.0],
]


def blocks_needed(beyond, sd):
    """None beyond 10,000."""
    if power(10_000, beyond, sd) < 0.8:
        return None
    low, high = 1, 10_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if power(middle, beyond, sd) < 0.8 else (low, middle)
    return high


def forecast(blocks, mean, sd, direction, delta):
    if blocks < 3 or sd <= 1e-12 * (1 + abs(mean)):
        return ["unknown", None]
    se = sd / math.sqrt(blocks)
    beyond = (mean - math.log(threshold(direction, delta))) * (1 if direction == "higher" else -1)
    needed = blocks_needed(math.hypot(beyond, se * math.sqrt(0.5)), sd)
    # The looks: see blocks_with_looks below.
    needed = None if needed is None else needed + math.floor(0.055 * max(needed - 6, 0) + 0.5)
    if needed is None or needed > 10_000:
        return ["at least", 10_000]
    return ["at least" if abs(beyond) < 0.5 * se else "blocks", max(needed, blocks + 1)]


out["forecasts"] = [
    {"blocks": n, "mean": mean, "sd": sd, "direction": direction, "delta": delta, "forecast": forecast(n, mean, sd, direction, delta)}
    for n, mean, sd, direction, delta in [
        (12, 0.03, 0.04, "higher", 0.01), (12, 0.03, 0.04, "lower", 0.01), (12, 0.0, 0.03, "higher", 0.01),
        (12, 0.01, 0.04, "higher", 0.01), (12, -0.05, 0.1, "lower", 0.02), (3, 0.02, 0.05, "higher", 0.0),
        (100, 0.001, 0.05, "higher", 0.0), (9_000, 1e-6, 0.05, "higher", 0.0), (12, 0.5, 0.01, "higher", 0.0),
        (2, 0.03, 0.04, "higher", 0.01), (12, 0.03, 0.0, "higher", 0.01), (12, 0.03, 1e-15, "higher", 0.01),
    ]
]


# Looks after each block: boundaries by the recursion of Armitage, McPherson and Rowe (1969) over Gauss's nodes.
def boundaries(times, alpha):
    nodes, weights = np.polynomial.legendre.leggauss(240)
    bounds, points, masses, before, spent_before = [], np.zeros(1), np.ones(1), 0.0, 0.0
    for t in times:
        sd, step = math.sqrt(t - before), spent(t, alpha) - spent_before
        crossing = lambda b: masses @ (stats.norm.sf((b - points) / sd) + stats.norm.cdf((-b - points) / sd))
        bound = optimize.brentq(lambda b: crossing(b) - step, 0, 12 * math.sqrt(t), xtol=1e-13)
        bounds.append(bound / math.sqrt(t))
        reached = bound * nodes
        masses = bound * weights * ((stats.norm.pdf((reached[:, None] - points) / sd) / sd) @ masses)
        points, before, spent_before = reached, t, spent(t, alpha)
    return bounds


def schedule(first, every, most, level):
    looks = [*range(first, most, every), most]
    return looks, [2 * stats.norm.sf(z) for z in boundaries([n / most for n in looks], 1 - level)]


def repeated(logs, significance):
    """Jennison and Turnbull's interval at a look; None where nothing varies."""
    sd = np.std(logs, ddof=1)
    if sd <= 1e-12:
        return None, None
    margin = stats.t.ppf(1 - significance / 2, len(logs) - 1) * sd / math.sqrt(len(logs))
    return math.exp(np.mean(logs) - margin), math.exp(np.mean(logs) + margin)


# The effect that is found beyond δ at the last of several looks, with a probability of 80 %, and how often a simulation of the
# whole experiment finds it at any look: 60,000 experiments with independent normal blocks.
def detectable_with_looks(first, every, most, sd, delta):
    significance = schedule(first, every, most, 0.95)[1][-1]
    beyond = optimize.brentq(lambda e: power(most, e, sd, significance) - 0.8, 1e-6 * sd, 50 * sd, xtol=1e-14)
    return (1 + delta) * math.exp(beyond) - 1


def found(first, every, most, sd, delta, effect):
    looks, levels = schedule(first, every, most, 0.95)
    blocks = np.random.default_rng(20261123).normal(math.log1p(effect), sd, (60_000, most))
    at_any = np.zeros(len(blocks), bool)
    for n, level in zip(looks, levels):
        part = blocks[:, :n]
        margin = stats.t.ppf(1 - level / 2, n - 1) * part.std(axis=1, ddof=1) / math.sqrt(n)
        at_any |= part.mean(axis=1) - margin > math.log1p(delta)
    return float(at_any.mean())


out["detectable_with_looks"] = []
for case in [(5, 1, 12, 0.04, 0.0), (3, 1, 5, 0.02, 0.01), (5, 5, 40, 0.05, 0.02), (5, 1, 5, 0.03, 0.05)]:
    effect = detectable_with_looks(*case)
    out["detectable_with_looks"].append({"case": case, "effect": effect, "found": round(found(*case, effect), 3)})

# The smallest plan whose simulated experiments, with a look after each block from the fifth, find an effect in 80 %.
def blocks_with_looks(beyond):
    n = blocks_needed(beyond, 1.0)
    while found(5, 1, n, 1.0, 0.0, math.expm1(beyond)) < 0.8:
        n += 1
    return n


out["blocks_with_looks"] = [[beyond, blocks_with_looks(beyond)] for beyond in [1.2, 1.0, 0.8, 0.6, 0.5, 0.4, 0.3]]

out["schedules"] = []
for first, every, most, level in [(5, 1, 12, 0.95), (4, 3, 12, 0.95), (2, 1, 2, 0.95), (10, 10, 10, 0.9), (10, 10, 40, 0.99)]:
    looks, levels = schedule(first, every, most, level)
    out["schedules"].append({
        "first": first, "every": every, "max_blocks": most, "level": level, "looks": looks, "significances": levels
    })

out["decisions"] = []
looks, levels = schedule(5, 1, 12, 0.95)
for name, logs in {
    "no effect": rng.normal(0, 0.04, 12),
    "five per cent": rng.normal(math.log(1.05), 0.02, 12),
    "half as much again": rng.normal(math.log(1.5), 0.02, 12),
    "a tenth less": rng.normal(math.log(0.9), 0.03, 12),
    "constant": np.full(12, 0.1),
    "constant until the seventh": np.append(np.full(7, 0.02), rng.normal(0.02, 0.03, 5)),
    "ties": rng.choice([-0.02, 0.0, 0.03], 12),
    "heavy tails": 0.04 * rng.standard_t(2, 12),
    "not enough blocks": rng.normal(0, 0.04, 4),
    "not used up": rng.normal(0, 0.04, 8),
}.items():
    logs = np.round(logs, 6)
    for direction, delta in [("higher", 0.0), ("higher", 0.01), ("lower", 0.0), ("lower", 0.02)]:
        case = {"name": name, "log_ratios": logs, "direction": direction, "delta": delta, "stop": None}
        for n, significance in zip(looks, levels):
            if n > len(logs):
                break
            low, high = repeated(logs[:n], significance)
            said = verdict(direction, delta, low, high)
            if said != "undecided" or n == 12:
                mean, sd = np.mean(logs[:n]), np.std(logs[:n], ddof=1)
                case["stop"] = {
                    "blocks": n, "verdict": said, "ratio": math.exp(mean), "low": low, "high": high,
                    "minimum_detectable_effect": None if low is None else detectable(12, sd),
                    "forecast": forecast(n, mean, sd, direction, delta) if said == "undecided" else None,
                }
                break
        out["decisions"].append(case)

# Several questions at once; designs with gaps, far outliers and ties.
out["holm"] = [
    [p, multipletests(p, method="holm")[1] if p else []]
    for p in [[], [0.03], [0.01, 0.01, 0.01], [1.0, 0.0, 0.5], [0.04, 0.01, 0.03, 0.005], [0.2, 0.2, 0.9, 1e-12]]
]
unbalanced = responses(2, 4, lambda: rng.normal(0, 0.03))
out["factorial_edges"] = [
    effects([row for i, row in enumerate(unbalanced) if i not in (2, 9, 10)], 2, 4, 2),
    effects(responses(1, 5, lambda: rng.normal(0, 0.03)), 1, 5, 1),
    effects(responses(2, 4, lambda: 0.03 * rng.standard_t(2)), 2, 4, 2),
    effects([(b, levels, float(round(y, -2))) for b, levels, y in responses(3, 3, lambda: rng.normal(0, 0.2))], 3, 3, 2),
]

# Experiments pooled: Paule and Mandel's variance between them; the interval of Hartung, Knapp, Sidik and Jonkman, its scale at least 1.
out["pooled"] = []
for name, effects_and_errors in {
    "two alike": [(0.05, 0.01), (0.05, 0.01)],
    "two that differ": [(0.02, 0.01), (0.09, 0.012)],
    "three": [(0.05, 0.01), (0.04, 0.02), (0.08, 0.015)],
    "less between than within": [(0.05, 0.03), (0.051, 0.03), (0.049, 0.02), (0.0505, 0.04)],
    "one far off": [(0.01, 0.005), (0.012, 0.006), (0.008, 0.004), (0.2, 0.02), (0.011, 0.01)],
    "far scales": [(-0.7, 1e-4), (0.3, 0.2), (-0.69, 1e-3)],
}.items():
    effect, error = np.array(effects_and_errors).T

    def excess(variance):
        weights = 1 / (error**2 + variance)
        return weights @ (effect - np.average(effect, weights=weights)) ** 2 - (len(effect) - 1)

    # statsmodels' own iteration can step over the root, and then takes 0: it gets the root, and computes the rest.
    variance = optimize.brentq(excess, 0, 10, xtol=1e-15) if excess(0) > 0 else 0.0
    pooled = combine_effects(effect, error**2 + variance, method_re="chi2", use_t=True)
    mean, spread = pooled.mean_effect_fe, max(1, math.sqrt(pooled.q / (len(effect) - 1)))
    margin = stats.t.ppf(0.975, len(effect) - 1) * pooled.sd_eff_w_fe * spread
    out["pooled"].append({
        "name": name, "effects": effects_and_errors, "mean": mean, "between": math.sqrt(variance),
        "low": mean - margin, "high": mean + margin,
    })

answers.write("experiments.json", out)
