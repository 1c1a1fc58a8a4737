"""Writes factorials.json: effects of several factors from statsmodels, judged by what equal runs differ by; what they can show."""
import itertools
import math

import numpy as np
import statsmodels.api as sm
from scipy import optimize, stats
from statsmodels.stats.multitest import multipletests

import answers

rng = np.random.default_rng(20261123)
out = {"made_with": answers.MADE_WITH}


def signs(levels, term):
    return math.prod(2 * levels[f] - 1 for f in term)


def case(name, runs, blocks, terms, truth, delta, missing=()):
    """Rows with the true log effects of some sets of factors; the answer with a column for each block and for each run."""
    rows = []
    for block in range(blocks):
        shift = rng.normal(0, 0.1)
        for run in runs:
            log = math.log(1000) + shift + sum(e / 2 * signs(run, t) for t, e in truth.items()) + rng.normal(0, 0.03)
            rows.append((block, run, round(math.exp(log), 3)))
    rows = [row for i, row in enumerate(rows) if i not in missing]
    y = np.log([row[2] for row in rows])
    dummies = np.array([[float(row[0] == b) for b in range(blocks)] for row in rows])
    reduced = sm.OLS(y, np.hstack([dummies, [[signs(row[1], t) for t in terms] for row in rows]])).fit()
    distinct = sorted(set(runs))
    full = sm.OLS(y, np.hstack([dummies, [[float(row[1] == r) for r in distinct[1:]] for row in rows]])).fit()
    error = np.sqrt(full.mse_resid * np.diag(reduced.normalized_cov_params)[blocks:]) * 2
    effect = 2 * reduced.params[blocks:]
    t = np.maximum(np.abs(effect) - math.log1p(delta), 0) / error
    holm = multipletests(2 * stats.t.sf(t, full.df_resid), method="holm")[1]
    margin = stats.t.ppf(1 - 0.05 / len(terms) / 2, full.df_resid) * error
    left = len(distinct) - 1 - len(terms)
    f = (reduced.ssr - full.ssr) / left / full.mse_resid if left else None
    return {
        "name": name, "delta": delta, "terms": terms, "sd": math.sqrt(full.mse_resid), "df": full.df_resid,
        "lack_of_fit": stats.f.sf(f, left, full.df_resid) if left else None,
        "rows": [{"block": b, "levels": list(levels), "response": y} for b, levels, y in rows],
        "effects": [
            {"ratio": math.exp(e), "low": math.exp(e - m), "high": math.exp(e + m), "p_adjusted": p}
            for e, m, p in zip(effect, margin, holm)
        ],
    }


def full(factors):
    return list(itertools.product([0, 1], repeat=factors))


half = [(*run, int(sum(run) % 2)) for run in full(3)]  # D=ABC
first = [int(sign == "+") for sign in "++-+++---+-"]
screen = [tuple(first[(f - by) % 11] for f in range(6)) for by in range(11)] + [(0,) * 6]
mains = [[0], [1], [2], [3]]
pairs = [list(pair) for pair in itertools.combinations(range(3), 2)]
out["replicated"] = [
    case("two factors", full(2), 4, [[0], [1], [0, 1]], {(0,): 0.1, (0, 1): 0.05}, 0.01),
    case("a half of four factors", half, 3, [*mains, [0, 1], [0, 2], [0, 3]], {(0,): 0.1, (3,): -0.2, (0, 1): 0.04}, 0.0),
    case("an interaction left out", full(3), 3, [[0], [1], [2], *pairs], {(1,): 0.1, (0, 1, 2): 0.3}, 0.02),
    case("six factors in twelve runs", screen, 2, [[f] for f in range(6)], {(2,): 0.1, (0, 1): 0.15}, 0.01),
    case("rows missing", half, 4, [*mains, [0, 1], [0, 2], [0, 3]], {(0,): 0.1}, 0.01, (3, 11, 12, 30)),
    case("nothing acts", full(2), 3, [[0], [1], [0, 1]], {}, 0.1),
]


def contrast(df, error, significance):
    critical = stats.t.ppf(1 - significance / 2, df)
    return error * optimize.brentq(lambda nc: stats.nct.sf(critical, df, nc) - 0.8, 0, 50 * critical)


out["detectable_contrast"] = [
    [df, error, significance, contrast(df, error, significance)]
    for df, error, significance in itertools.product([1, 3, 15, 200], [0.01, 0.1], [0.05, 0.005]) if df > 1 or significance == 0.05
]

answers.write("factorials.json", out)
