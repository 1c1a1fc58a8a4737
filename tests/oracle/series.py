"""Writes series.json: known answers for what crates/stats says of the windows of one run.

The intervals are a design of mydyno's own (docs/journal/statistics.md), which no library holds whole: here they are put
together a second time from the papers that they rest on, with the reflection coefficients, Levinson's recursion, skewness
and Student's t of statsmodels and scipy. MSER-5 is computed in fractions, Little's law as the integral of the number in the
system over a loop whose every transaction is known.
"""
import math
from fractions import Fraction

import numpy as np
from scipy import stats
from scipy.fft import dct
from statsmodels.tsa.stattools import levinson_durbin_pacf, pacf_burg

import answers

rng = np.random.default_rng(20261122)
out = {"made_with": answers.MADE_WITH}

LEVEL = 0.95
SHORTEST = 16  # windows
RELIABLE = 240  # windows
WANDERS = 1.73
UNSEEN = 12
LOOKS = (3, 9)  # windows in a batch
MOST_ORDER = 8
FALSE_ALARM = 0.05


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


# The error of the mean of correlated windows: an autoregression's spectrum at 0.
def fitted(x):
    """Coefficients and innovation variance, order 1 to len/15 by corrected AIC (Hurvich and Tsai 1989)."""
    n = len(x)
    reflections = pacf_burg(x, min(max(n // 15, 1), MOST_ORDER, n - 4), demean=False)[0]
    best = (math.inf, None, None)
    for order in range(1, len(reflections)):
        variance = np.mean(x**2) * np.prod(1 - reflections[1 : order + 1] ** 2)
        k = order + 1
        criterion = n * math.log(max(variance, np.finfo(float).tiny)) + 2 * k * n / max(n - k - 2, 1)
        if criterion < best[0]:
            best = (criterion, levinson_durbin_pacf(reflections[: order + 1])[0], variance)
    return best[1:]


def look(x, effects):
    """Standard error, its degrees of freedom, and the skewness of the mean, by windows of one width."""
    n = len(x)
    if n < SHORTEST or not np.any(x):
        return None
    weights, variance = fitted(x)
    p, total = len(weights), weights.sum()
    # Kendall (1954), Marriott and Pope (1954), and how much of it simulation asked for.
    total = min(total + (effects + (effects + 2) * total) / n * (0.4 + 0.3 * min(60 / n, 1) + 18 / n), 0.995)
    innovation = variance * n / max(n - p - effects, 1)
    phi = max(total, -0.9)
    df = max(2 / (4 * p * max(1 + phi, 0.5) / ((1 - phi) * n) + 2 / n), 1)
    unforeseen = np.array([x[t] - weights @ x[t - p : t][::-1] for t in range(p, n)])
    skewness = stats.skew(unforeseen, bias=False) if np.ptp(unforeseen) > 0 else 0.0
    return math.sqrt(innovation / (1 - total) ** 2 / n), df, skewness / math.sqrt(n)


def means_of(x, size):
    if size == 1:
        return x
    means = x[len(x) % size :].reshape(-1, size).mean(axis=1)
    return means - means.mean() if len(means) else means


def by_neighbours(x, counting):
    """The error that an AR(1) with the correlation of neighbours has, of whose variance `counting` is independent."""
    base = len(x) // 1000 + 1
    x, counting = means_of(x, base), counting / base
    n, shared = len(x), np.mean(x**2) - counting
    if shared <= 0:
        return math.sqrt(counting / n)
    seen = (x[:-1] @ x[1:]) / (shared * n)
    phi = min(max(seen + (1 + 3 * seen) / n, -0.5), 0.99)
    return math.sqrt((shared * (1 + phi) / (1 - phi) + counting) / n)


def mean_error(x, effects):
    base = len(x) // 1000 + 1
    single = look(means_of(x, base), effects)
    if single is None:
        return None
    se, df, skewness = single
    for size in LOOKS:
        coarse = look(means_of(x, base * size), effects)
        if coarse is None:
            break
        between = math.sqrt(single[0] * coarse[0])
        if between > se:
            se, df = between, math.sqrt(single[1] * coarse[1])
    wander = se / by_neighbours(x, 0.0)
    return {"se": se, "df": df, "skewness": skewness, "worth": np.mean(x**2) / se**2, "wander": wander}


def with_slowest_part(error, x):
    """At least what the slowest cosines say (Müller 2007; Lazarus, Lewis, Stock and Watson 2018): scipy's transform of them."""
    count = max(len(x) // 120, 5)
    cosines = dct(x, type=2, norm="ortho")[1 : count + 1]
    se = math.sqrt(np.mean(cosines**2) / len(x))
    if se <= error["se"]:
        return error
    larger = se / error["se"]
    return {**error, "se": se, "df": count, "worth": error["worth"] / larger**2, "wander": error["wander"] * larger}


def margins(error):
    """Willink (2005): quantiles of t bent by the skewness of the mean."""
    b = error["skewness"] / 6

    def bent(t):
        return t if abs(b) < 1e-6 else (np.cbrt(1 + 6 * b * (t - b)) - 1) / (2 * b)

    t = stats.t.ppf(0.5 + LEVEL / 2, error["df"])
    return bent(t) * error["se"], -bent(-t) * error["se"]


# Steadiness: contrasts against noise as correlated as it is without them.
def slope(x, shape, hidden):
    shape = shape - shape.mean()
    size = shape @ x / (shape @ shape)
    error = mean_error(x - x.mean() - size * shape, 2)
    if error is None:
        return size, 0.0 if abs(size) > np.finfo(float).eps * len(x) else 1.0
    se = hidden * error["se"] * math.sqrt(len(x) / (shape @ shape))
    return size, 2 * stats.t.sf(abs(size) / se, error["df"])


def start(x, windows, hidden):
    half = x[len(x) // 2 :]
    size = half.mean() - x[:windows].mean()
    error = mean_error(half - half.mean(), 1)
    if error is None:
        return size, 0.0 if abs(size) > np.finfo(float).eps * len(x) else 1.0
    se = hidden * error["se"] * math.sqrt(1 + len(half) / windows)
    return size, 2 * stats.t.sf(abs(size) / se, error["df"])


def steadiness(mean, x, relevant=0.01, hidden=1.0):
    """Steady or not, None where too short to tell, and the change that stands out as a share of the mean."""
    n = len(x)
    if n < SHORTEST:
        return None, 0.0
    quarter, tenth = -(-n // 4), max(n // 10, 10)
    tests = [slope(x, (np.arange(n) + 0.5) / n, hidden)]
    if n >= 2 * SHORTEST:
        tests += [start(x, quarter, hidden), start(x, tenth, hidden)]
    else:
        tests.append(slope(x, np.where(np.arange(n) < quarter, -1.0, 0.0), hidden))
    steady, worst = True, 0.0
    for size, p in tests:
        change = size / mean if mean else 0.0
        if p < FALSE_ALARM / len(tests) and abs(change) > max(relevant, abs(worst)):
            steady, worst = False, change
    return steady, worst


def estimate(value, low=None, high=None, doubt=False):
    kind = "none" if low is None else "provisional" if doubt else "interval"
    return {"value": value, "low": low, "high": high, "kind": kind}


def about_mean(value, x):
    error = mean_error(x, 1)
    if error is None or np.all(np.abs(x) <= 1e-12 * abs(value)) or steadiness(value, x)[0] is False:
        return estimate(value)
    error = with_slowest_part(error, x)
    doubt = len(x) < RELIABLE or error["wander"] >= WANDERS
    independent = error["worth"] * error["se"] ** 2 / len(x)
    error["se"] = math.sqrt(error["se"] ** 2 + UNSEEN / len(x) * independent)
    below, above = margins(error)
    return estimate(value, value - below, value + above, doubt)


def centred(values):
    """The mean, rounded once, and what is left without it."""
    about = math.fsum(values) / len(values) if len(values) else 0.0
    return about, np.array(values, float) - about


def mean(values):
    return about_mean(*centred(values)) if len(values) else estimate(0.0)


def throughput(counts, widths):
    counts, widths = np.array(counts, float), np.array(widths, float)
    if widths.sum() <= 0:
        return estimate(0.0)
    rate = counts.sum() / widths.sum()
    answer = about_mean(rate, (counts - rate * widths) / widths.mean())
    if answer["low"] is not None:
        answer["low"] = max(answer["low"], 0.0)
    return answer


def spiky(n):
    return 100 + rng.normal(size=n) - (rng.random(n) < 0.05) * rng.exponential(5, n) * 4


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
    "more windows than an autoregression is fitted to": 100 + 4 * ar1(0.6, 1100),
}
out["means"] = []
for name, values in series.items():
    values = rounded(values)
    steady, change = steadiness(*centred(values))
    out["means"].append({"name": name, "values": values, "mean": mean(values), "steady": steady, "change": change})

out["mean_errors"] = []
for name in ["as few as can be", "a minute", "five minutes, strongly correlated", "stalls", "heavy tails", "ties"]:
    x = centred(rounded(series[name]))[1]
    for effects in (1, 2):
        error = mean_error(x, effects)
        below, above = margins(error)
        out["mean_errors"].append({"name": name, "effects": effects, **error, "below": below, "above": above})

out["throughputs"] = []
for name, counts, widths in [
    ("nothing", [], []),
    ("no time", [3, 4], [0.0, 0.0]),
    ("one window", [500], [1.0]),
    ("equal windows", [100] * 60, [1.0] * 60),
    ("widths in turns", None, [0.5, 1.5] * 30),
    ("widths that vary a little", None, rounded(1 + 0.01 * rng.normal(size=260))),
    ("few and rare", rng.poisson(0.1, 250), [1.0] * 250),
    ("a window that is twice as long", None, [1.0] * 100 + [2.0] + [1.0] * 150),
]:
    if counts is None:
        counts = np.round((1000 + 20 * ar1(0.4, len(widths))) * np.array(widths))
    out["throughputs"].append(
        {"name": name, "counts": [int(c) for c in counts], "widths_s": widths, "estimate": throughput(counts, widths)}
    )


# Percentiles by Woodruff (1952), read off a histogram of 1 ns up to 255 ns and 128 buckets an octave above.
class Histogram:
    def __init__(self, values):
        values = np.array(values, int)
        octave = np.array([max(int(v).bit_length() - 8, 0) for v in values], int)
        edges, self.counts = np.unique(values >> octave << octave, return_counts=True)
        highs = [low + (1 << max(int(low).bit_length() - 8, 0)) - 1 for low in edges]
        self.total = len(values)
        if self.total:
            self.least, self.most = int(values.min()), int(values.max())
            self.low, self.high = np.maximum(edges, self.least), np.minimum(highs, self.most)
            self.edges, self.through = edges, np.cumsum(self.counts)

    def place(self, q):
        target = min(max(q, 0.0), 1.0) * self.total
        return target, int(np.argmax(self.through >= target))

    def quantile(self, q):
        target, i = self.place(q)
        share = max(target - (self.through[i] - self.counts[i]), 0.0) / self.counts[i]
        return float(self.low[i] + share * (self.high[i] - self.low[i]))

    def bounds(self, q):
        _, i = self.place(q)
        return float(self.low[i]), float(self.high[i])

    def below(self, ns):
        whole = int(ns)
        octave = max(whole.bit_length() - 8, 0)
        edge = whole >> octave << octave
        count = float(self.counts[self.edges < edge].sum())
        for i in np.flatnonzero(self.edges == edge):
            width = float(self.high[i] - self.low[i] + 1)
            count += self.counts[i] * min(max((ns - self.low[i]) / width, 0.0), 1.0)
        return count


class Beyond:
    """The share of values above a time, window by window."""

    def __init__(self, windows, ns):
        sizes = np.array([w.total for w in windows], float)
        above = np.array([w.total - w.below(ns) for w in windows])
        share, typical = above.sum() / sizes.sum(), sizes.sum() / len(windows)
        self.x = (above - share * sizes) / typical
        self.counting = share * (1 - share) / typical
        self.n = len(windows)

    def variance(self):
        return self.x @ self.x / (self.n - 1)

    def error(self):
        error = mean_error(self.x, 1)
        return error and with_slowest_part(error, self.x)

    def own(self):
        floor = math.sqrt(self.counting / self.n)
        error = self.error()
        if error is None:
            error = {"se": floor, "df": self.n - 1, "worth": self.n, "skewness": 0.0}
        error["se"] = max(error["se"], floor)
        error["wander"] = error["se"] / max(by_neighbours(self.x, self.counting), floor)
        return error

    def unmasked(self):
        """With the correlation that counting masks given back; None where nothing varies."""
        error = mean_error(self.x, 1)
        if error is None:
            return None
        variance = self.variance()
        shared = max(variance - self.counting, 0.0)
        inflation = self.n * error["se"] ** 2 / variance
        seen = max((inflation - 1) / (inflation + 1), 0.0)
        freed = min(seen * variance / shared, 0.95) if shared > 0 else (0.95 if seen > 0 else 0.0)
        if freed > seen:
            joint = math.sqrt((shared * (1 + freed) / (1 - freed) + self.counting) / self.n)
            error["se"] *= max(joint / error["se"], 1.0) ** (0.5 * min(60 / self.n, 1.0))
            error["worth"] = variance / error["se"] ** 2
        return error

    def with_middle(self, middle):
        own = self.own()
        if middle is None:
            return own
        worth = min(max(middle["worth"], 1.0), self.n)
        shared = max(self.variance() - self.counting, 0.0) / worth
        counting = self.counting / self.n
        se = math.sqrt(shared + counting)
        if se <= own["se"]:
            return own
        # Welch (1947) and Satterthwaite (1946).
        df = (shared + counting) ** 2 / (shared**2 / middle["df"] + counting**2 / (self.n - 1))
        df = min(df, max(own["df"], middle["df"]))
        w = min((self.counting / self.variance()) ** 0.75, 1.0)
        return {**own, "se": se**w * own["se"] ** (1 - w), "df": df**w * own["df"] ** (1 - w)}


def percentile(samples, q):
    windows, whole = [Histogram(s) for s in samples], Histogram(np.concatenate(samples) if samples else [])
    if whole.total == 0:
        return estimate(0.0)
    value, rarer = whole.quantile(q), min(q, 1 - q)
    if len(windows) < SHORTEST or whole.total * rarer < 10 or whole.least == whole.most:
        return estimate(value)
    here = Beyond(windows, value)
    own, error = here.own(), here.with_middle(Beyond(windows, whole.quantile(0.5)).unmasked())
    if steadiness(rarer, here.x, 0.1, error["se"] / own["se"])[0] is False:
        return estimate(value)
    below, above = margins(error)
    low_q, high_q = max(q - above, 0.0), min(q + below, 1.0)
    low, high = whole.quantile(low_q), whole.quantile(high_q)
    if whole.place(low_q)[1] == whole.place(high_q)[1]:
        low, high = whole.bounds(low_q)
    doubt = len(windows) < RELIABLE or error["wander"] >= WANDERS
    return estimate(value, min(low, value), max(high, value), doubt)


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
