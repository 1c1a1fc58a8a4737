"""Writes series.json: known answers for what crates/stats says of the windows of one run.

Intervals and steadiness come from windows.py. MSER-5 is computed in fractions, Little's law as the integral of the number in the
system over a loop whose every transaction is known.
"""
import math
from fractions import Fraction

import numpy as np

import answers
from windows import centred, mean, mean_error, percentile, steadiness, throughput

rng = np.random.default_rng(20261122)
out = {"made_with": answers.MADE_WITH}


# Where a warm-up ends: White (1997), MSER-5, searched over the first half of the batches.
def mser5(values):
    batches = [sum(map(Fraction, values[i : i + 5])) / 5 for i in range(0, len(values) // 5 * 5, 5)]
    if len(batches) < 4:
        return None

    def squared_error(cut):
        rest = batches[cut:]
        mean = sum(rest) / len(rest)
        return sum((batch - mean) ** 2 for batch in rest) / len(rest) ** 2

    half = len(batches) // 2
    cut = min(range(half + 1), key=lambda cut: (squared_error(cut), cut))
    return 5 * cut if cut < half else None


def ar1(phi, n):
    x = np.zeros(n + 100)
    for t in range(1, n + 100):
        x[t] = phi * x[t - 1] + math.sqrt(1 - phi * phi) * rng.normal()
    return x[100:]


def rounded(values):
    return [round(float(v), 3) for v in values]


warm = np.arange(200)
out["warm_up_end"] = [
    {"name": name, "values": rounded(values), "end": mser5(rounded(values))}
    for name, values in {
        "nothing": [],
        "one value": [7.0],
        "too short": rng.normal(100, 1, 19),
        "just long enough": rng.normal(100, 1, 20),
        "just long enough, slow at first": [40.0] * 5 + list(rng.normal(100, 1, 15)),
        "constant": [3.3] * 60,
        "constant but for the first batch": [1.0] + [2.0] * 59,
        "constant but for two batches": [1.0] * 10 + [2.0] * 60,
        "constant but for the last value": [2.0] * 59 + [1.0],
        "steady": rng.normal(100, 3, 120),
        "what fills no batch is left out": list(rng.normal(100, 3, 60)) + [1e6, 1e6],
        "exponential warm-up": 1000 - 600 * np.exp(-warm / 10) + 5 * rng.normal(size=200),
        "exponential warm-up of correlated windows": 1000 - 300 * np.exp(-warm / 15) + 20 * ar1(0.8, 200),
        "a step after a quarter": np.where(warm < 50, 80, 100) + rng.normal(size=200),
        "a step in the middle": np.where(warm < 100, 80, 100) + rng.normal(size=200),
        "a step after it": np.where(warm < 140, 80, 100) + rng.normal(size=200),
        "drifting to the end": warm + 5 * rng.normal(size=200),
        "drifting to the end, without noise": warm,
        "ties": rng.integers(0, 3, 100),
        "ties after a warm-up": np.concatenate([[9] * 12, rng.integers(0, 3, 88)]),
        "levels in turns": np.tile(np.repeat([10.0, 20.0], 5), 8),
        "heavy tails": 100 + rng.standard_t(2, 150),
        "heavier tails": rng.pareto(1.1, 150),
        "a stall late": np.where(np.arange(150) == 120, 0, rng.normal(100, 1, 150)),
        "far from 0": 1e9 + np.where(np.arange(100) < 10, -50, 0) + rng.normal(size=100),
    }.items()
]


# Little's law: transactions that ended within the window against the number in the system, integrated over it.
def loop(name, connections, window_s, times_s, rest=0.0, recorded=1.0, kept=1.0, fits=True):
    window_ns = round(window_s * 1e9)
    transactions = sum_ns = inside_ns = longest_ns = 0
    for _ in range(connections):
        at = None
        while at is None or at < window_ns:
            ns = max(round(float(times_s()) * 1e9), 1)
            begin = round(-rng.random() * ns) if at is None else at
            end = begin + ns
            inside_ns += max(min(end, window_ns) - max(begin, 0), 0)
            longest_ns = max(longest_ns, ns)
            if 0 < end <= window_ns and rng.random() < kept:
                transactions += 1
                sum_ns += round(recorded * ns)
            at = end + round(rest * ns)
    arrivals_per_s, mean_s = transactions / window_s, sum_ns / transactions / 1e9
    return {
        "name": name, "transactions": transactions, "sum_ns": sum_ns, "window_s": window_s, "connections": connections,
        "in_system": arrivals_per_s * mean_s, "utilisation": arrivals_per_s * mean_s / connections,
        "truly_in_system": inside_ns / window_ns, "honest": recorded == kept == 1.0,
        "edge": connections * longest_ns / window_ns, "fits": fits,
    }


out["little"] = [
    loop("all times equal", 8, 2.0, lambda: 1e-3),
    loop("exponential times", 16, 10.0, lambda: rng.exponential(5e-3)),
    loop("heavy tails", 32, 20.0, lambda: 2e-3 * (1 + rng.pareto(2.1))),
    loop("one connection", 1, 5.0, lambda: rng.exponential(1e-2)),
    loop("a transaction as long as half the window", 1, 10.0, lambda: 5.0),
    loop("few long ones", 4, 10.0, lambda: 4.0),
    loop("a window that is no whole number of seconds", 4, 0.37, lambda: rng.exponential(1e-3)),
    loop("a twentieth of rest", 8, 10.0, lambda: rng.exponential(2e-3), rest=0.05),
    loop("a fifth of rest", 8, 10.0, lambda: rng.exponential(2e-3), rest=0.25, fits=False),
    loop("half of it lost", 8, 10.0, lambda: rng.exponential(2e-3), kept=0.5, fits=False),
    loop("times an eighth too long", 8, 10.0, lambda: rng.exponential(2e-3), recorded=1.125, fits=False),
    loop("times counted twice", 2, 10.0, lambda: rng.exponential(2e-3), recorded=2.0, fits=False),
] + [
    {"name": name, "transactions": n, "sum_ns": sum_ns, "window_s": window_s, "connections": connections, "in_system": None}
    for name, n, sum_ns, window_s, connections in [
        ("nothing done", 0, 0, 10.0, 4), ("no time", 5, 1000, 0.0, 4), ("no connection", 5, 1000, 1.0, 0)
    ]
]


def spiky(n):
    return 100 + rng.normal(size=n) - (rng.random(n) < 0.05) * rng.exponential(5, n) * 4


def of_levels():
    """Two minutes of a level between parts of two others, under noise as large as they are; drawn from a generator of its own."""
    own = np.random.default_rng(120)
    return 100 + 4 * np.repeat([0.6, -0.7, 0.5], [70, 120, 50]) + 4 * own.normal(size=240)


def falls(n, at, phi, seed):
    """A lasting fall by a fifth under correlated noise of 4 %."""
    own = np.random.default_rng(seed)
    x = np.zeros(n)
    x[0] = own.normal()
    for t in range(1, n):
        x[t] = phi * x[t - 1] + math.sqrt(1 - phi * phi) * own.normal()
    return 100 - 20 * (np.arange(n) >= at) + 4 * x


def rises(n, at, phi, seed):
    """A lasting rise by a fifth, and of the noise with it."""
    return falls(n, n, phi, seed) * np.where(np.arange(n) < at, 1.0, 1.2)


def flips(n, seed):
    """Two levels that last ten windows on average, under little noise."""
    own = np.random.default_rng(seed)
    side = own.choice([-1, 1]) * np.where(np.cumsum(own.random(n) < 0.1) % 2, -1, 1)
    return 100 + 4 * side + 1.2 * own.normal(size=n)


def walk(n, seed):
    """Independent noise upon a random walk."""
    own = np.random.default_rng(seed)
    return 100 + 4 * own.normal(size=n) + 0.5 * np.cumsum(own.normal(size=n))


series = {
    "nothing": [],
    "one value": [5.0],
    "a window too few": 100 + 4 * ar1(0.3, 15),
    "as few as can be": 100 + 4 * ar1(0.3, 16),
    "thirty windows": 100 + 4 * ar1(0.5, 30),
    "thirty-one windows that rise": 100 + 4 * ar1(0.0, 31) + np.arange(31),
    "constant": [0.1] * 60,
    "all zero": [0.0] * 60,
    "a minute": 100 + 4 * ar1(0.7, 60),
    "two minutes, one after the other in turns": 100 + 4 * ar1(-0.6, 120),
    "a window too few for a level": 100 + 4 * ar1(0.3, 239),
    "four minutes": 100 + 4 * ar1(0.3, 240),
    "five minutes, strongly correlated": 100 + 4 * ar1(0.9, 300),
    "four minutes upon a level that wanders": 100 + ar1(0.0, 240) + 2 * ar1(0.99, 240),
    "ties": rng.integers(0, 5, 240),
    "stalls": spiky(300),
    "heavy tails": 100 + rng.standard_t(2, 260),
    "heavier tails": rng.pareto(1.2, 240),
    "a warm-up": 100 - 40 * np.exp(-np.arange(240) / 12) + ar1(0.2, 240),
    "a drift to the end": 100 + 4 * ar1(0.5, 240) + np.arange(240) / 10,
    "a drift without noise": 100 + np.arange(60) / 10,
    "a change that does not matter": 100 + 0.05 * ar1(0.0, 240) + np.arange(240) / 400,
    "about 0": ar1(0.3, 240) - 0.001,
    "a second too few for four cosines": 100 + 4 * ar1(0.6, 479),
    "eight minutes": 100 + 4 * ar1(0.6, 480),
    "a drop after nine tenths": 100 + ar1(0.2, 240) - 50 * (np.arange(240) >= 216),
    "a drop to nothing": 100 * (np.arange(60) < 45) + np.abs(ar1(0.0, 60)),
    "a rise from nothing": 100.0 * (np.arange(60) >= 15),
    "four minutes of levels of two": of_levels(),
    "a minute, strongly correlated, that falls after a tenth": falls(60, 6, 0.9, 61),
    "the same after half": falls(60, 31, 0.9, 62),
    "four minutes, strongly correlated, that fall near the end": falls(240, 214, 0.9, 63),
    "ten minutes, strongly correlated, that fall": falls(601, 333, 0.95, 64),
    "a minute of plans that flip": flips(60, 126),
    "four minutes, correlated, that rise after an eighth": rises(240, 29, 0.9, 95),
    "four minutes upon a walk": walk(240, 65),
    "ten minutes upon a walk": walk(600, 66),
    "a quarter of an hour upon a walk": walk(900, 67),
}
out["means"] = []
for name, values in series.items():
    values = rounded(values)
    steady, change = steadiness(*centred(values))
    out["means"].append({"name": name, "values": values, "mean": mean(values), "steady": steady, "change": change})

out["mean_errors"] = []
for name in ["as few as can be", "a minute", "five minutes, strongly correlated", "stalls", "heavy tails", "ties", "eight minutes", "four minutes of levels of two", "four minutes upon a walk",
             "ten minutes upon a walk", "a quarter of an hour upon a walk"]:
    x = centred(rounded(series[name]))[1]
    for seconds in (60, 240, 600):
        se, df, wanders = mean_error(x, seconds)
        out["mean_errors"].append({"name": name, "seconds": seconds, "se": se, "df": df, "wanders": wanders})

out["throughputs"] = []
for name, counts, widths in [
    ("nothing", [], []),
    ("no time", [3, 4], [0.0, 0.0]),
    ("one window", [500], [1.0]),
    ("equal windows", [100] * 60, [1.0] * 60),
    ("widths in turns", None, [0.5, 1.5] * 30),
    ("widths that vary a little", None, rounded(1 + 0.01 * rng.normal(size=260))),
    ("few and rare", rng.poisson(0.1, 250), [1.0] * 250),
    ("a last window that was cut short", None, [1.0] * 250 + [0.1]),
    ("six seconds in windows of 20 ms", None, [0.02] * 300),
    ("a window that is twice as long", None, [1.0] * 100 + [2.0] + [1.0] * 150),
]:
    if counts is None:
        counts = np.round((1000 + 20 * ar1(0.4, len(widths))) * np.array(widths))
    rates = [c / w for c, w in zip(counts, widths) if w > 0 and w >= sum(widths) / len(widths) / 2]
    out["throughputs"].append({
        "name": name, "counts": [int(c) for c in counts], "widths_s": widths, "estimate": throughput(counts, widths),
        "steady": steadiness(*centred(rates))[0],
    })


def latencies(n, per_window, phi, median=200.0, own=0.4):
    level = 0.15 * ar1(phi, n)
    return [np.round(median * np.exp(level[t] + own * rng.normal(size=per_window))).astype(int) for t in range(n)]


out["percentiles"] = []
for name, samples in {
    "nothing": [],
    "windows without values": [[], [], []],
    "too few windows": latencies(15, 40, 0.0),
    "as few as can be": latencies(16, 40, 0.0),
    "all values equal": [[77] * 10] * 30,
    "ties": [rng.integers(1, 6, 20) for _ in range(60)],
    "a minute": latencies(60, 40, 0.5, median=3e5),
    "a minute of windows without noise": [list(range(100, 150))] * 60,
    "heavy tails, windows of different size": [
        np.round(100 * (1 + rng.pareto(1.2, 10 + t % 40))).astype(int) for t in range(80)
    ],
    "slow at first": [w + (60 if t < 15 else 0) for t, w in enumerate(latencies(60, 30, 0.0, median=90))],
    "four minutes": latencies(240, 20, 0.3),
    "four minutes, strongly correlated": latencies(240, 16, 0.9, median=100, own=0.2),
}.items():
    samples = [[int(v) for v in s] for s in samples]
    estimates = [[q, percentile([np.array(s, int) for s in samples], q)] for q in (0.5, 0.95, 0.99)]
    out["percentiles"].append({"name": name, "windows": samples, "estimates": estimates})

answers.write("series.json", out, only_finite=True)
