"""What series.py holds crates/stats to: intervals and steadiness of the windows of one run, put together a second time.

The intervals and the test of steadiness are a design of mydyno's own (docs/journal/statistics.md), which no library holds whole:
here they are made of the cosine transform, least squares and Student's t and F of scipy and numpy.
"""
import itertools
import math

import numpy as np
from scipy import stats
from scipy.fft import dct
from scipy.special import logsumexp

LEVEL = 0.95
SHORTEST = 16  # windows
RELIABLE = 240  # seconds
LONG = 480  # seconds
WANDER_ALARM = 0.01


# The factor of the error for power at frequency 0, which the cosines beside it do not see.
WIDER = 1.1

# Noise whose power falls steadily with frequency (a log-log slope over the 24 slowest cosines below -0.4) has more power at 0.
LONG_MEMORY = 1.5

# The error of the mean: the slowest cosines (Müller 2007; Lazarus, Lewis, Stock and Watson 2018).
def mean_error(x, seconds):
    """Standard error, degrees of freedom, and whether the level wanders; None where nothing differs."""
    if len(x) < SHORTEST or not np.any(x):
        return None
    power = dct(np.array(x, float), type=2, norm="ortho")[1:25] ** 2
    used = 4 if seconds >= LONG - 0.5 else 2
    with np.errstate(divide="ignore", invalid="ignore"):
        wanders = stats.f.sf(power[:2].mean() / power[2:12].mean(), 2, 10) < WANDER_ALARM
    frequencies = np.log(np.arange(1, len(power) + 1))
    slope = np.polyfit(frequencies, np.log(np.maximum(power / power.max(), 1e-12)), 1)[0]
    over_returning, over_white = drift(x)
    near = over_white > 2 and over_returning > -4
    drifts = over_white > 4 and over_returning > (0 if used == 4 else -0.6)
    wider = (WIDER if used == 4 else 1.2) * (LONG_MEMORY if slope < -0.4 or near else 1.0)
    return wider * math.sqrt(power[:used].mean() / len(x)), used, bool(wanders) or levels_last(x) or bool(drifts)


def blocks(x, most):
    size = max(1, math.ceil(len(x) / most))
    count = len(x) // size
    return np.array(x[: count * size], float).reshape(count, size).mean(axis=1), size


def drift(x):
    """How well a level that drifts through the run explains the slowest cosines, beside one that comes back and beside
    independent noise: log likelihoods (Whittle 1953)."""
    x, _ = blocks(x, 720)
    powers = dct(x, type=2, norm="ortho")[1 : 1 + min(100, len(x) // 2)] ** 2
    if not powers.any():
        return -math.inf, -math.inf
    powers = powers / powers.max() + 1e-12
    k = np.arange(1, len(powers) + 1)

    def best(spectra):
        # Normal cosines of these variances, the common factor by maximum likelihood.
        return max(stats.norm.logpdf(np.sqrt(powers), scale=np.sqrt(s * np.mean(powers / s))).sum() for s in spectra)

    def levels(corners):
        return [(1 + c * c) / (k * k + c * c) + floor for c in corners for floor in (0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1)]

    drifting, white = best(levels([0, 0.5, 1])), best([np.ones(len(k))])
    returning = max(best(levels([4, 5.6, 8, 12, 20, 40])), white)
    return drifting - returning, drifting - white


def levels_last(x):
    """Whether three levels explain far more of the squares than is left in the slowest cosines without them."""
    x = np.array(x, float)
    n = len(x)
    fits = []
    for parts in itertools.combinations(range(2, 19), 2):
        if parts[1] - parts[0] < 2:
            continue
        pair = [math.floor(n * part / 20 + 0.5) for part in parts]
        fit = np.concatenate([np.full(len(piece), piece.mean()) for piece in np.split(x, pair)])
        fits.append((fit @ fit, fit))
    squares, fit = max(fits, key=lambda one: one[0])
    return bool(squares / 2 > 21 * (dct(x - fit, type=2, norm="ortho")[1:11] ** 2).mean())


# Steadiness: steps and a trend, beside the power of the slowest cosines that is left when both they and the series have lost
# the step or the trend.
def statistic(x, shape, first, cosines):
    n = len(x)
    shape = shape - shape.mean()
    size = np.linalg.lstsq(shape[:, None], x, rcond=None)[0][0]
    waves = np.cos(math.pi * np.outer(np.arange(n) + 0.5, np.arange(first, cosines + 1)) / n)
    without = waves - np.outer(shape, shape @ waves) / (shape @ shape)
    plane, _ = np.linalg.qr(without)
    noise = np.mean((plane.T @ (x - size * shape)) ** 2)
    return size, size**2 * (shape @ shape) / max(noise, np.finfo(float).tiny)


def covariances(n):
    """Correlations of slow noise with independent noise upon it."""
    lag = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)
    independent = np.eye(n)
    pink = sum(np.exp(-lag * 0.5**octave) for octave in range(8)) / 8
    slow = [(phi**lag, share) for phi in (0.4, 0.6, 0.75, 0.85, 0.9, 0.95, 0.98, 0.995, 0.999) for share in (1, 0.7, 0.3, 0.1)]
    return [share * correlation + (1 - share) * independent + 1e-9 * independent for correlation, share in slow + [(pink, 1), (pink, 0.5), (pink, 0)]]


def often(n):
    """Probabilities of a change of level from one value to the next."""
    return [min(changes / n, 0.5) for changes in (4, 8, 16)]


def constant(n):
    """What the logarithm of a whole density has beside that of a Gaussian one whose fitted variance is left out."""
    return -n / 2 * (math.log(2 * math.pi) + 1 - math.log(n))


def two_plans(x):
    """Log likelihood of two levels that a series flips between, by expectation and maximisation in logarithms."""
    n, best = len(x), -math.inf
    for flips in often(n):
        moves = np.log([[1 - flips, flips], [flips, 1 - flips]])
        second = (x > x.mean()).astype(float)
        for _ in range(12):
            weights = np.array([1 - second, second])
            levels = weights @ x / np.maximum(weights.sum(axis=1), 1e-9)
            variance = max(np.sum(weights * (x - levels[:, None]) ** 2) / n, 1e-4 * x.var())
            fits = stats.norm.logpdf(x[:, None], levels, math.sqrt(variance))
            forward, backward = np.zeros((n, 2)), np.zeros((n, 2))
            forward[0] = fits[0] + math.log(0.5)
            for t in range(1, n):
                forward[t] = logsumexp(forward[t - 1][:, None] + moves, axis=0) + fits[t]
            for t in reversed(range(n - 1)):
                backward[t] = logsumexp(moves + (fits[t + 1] + backward[t + 1])[None, :], axis=1)
            whole = logsumexp(forward[-1])
            best = max(best, whole)
            second = np.exp(forward[:, 1] + backward[:, 1] - whole)
    return best - constant(n)


def levels_anew(x):
    """Log likelihood of levels drawn anew with the variance of the series, summed over all partitions."""
    n, best = len(x), -math.inf
    variance = x.var()
    for noise in (0.01, 0.03, 0.1, 0.2, 0.35):
        within = noise * variance
        whole = np.full((n, n + 1), -math.inf)
        for start in range(n):
            part = x[start:] - x.mean()
            k = np.arange(1, len(part) + 1)
            mean = np.cumsum(part) / k
            scatter = np.maximum(np.cumsum(part**2) - k * mean**2, 0)
            about = scatter / within + mean**2 / (variance + within / k)
            whole[start, start + 1 :] = -0.5 * (k * math.log(2 * math.pi) + (k - 1) * math.log(within) + np.log(within + k * variance) + about)
        for change in often(n):
            until = [0.0]
            for end in range(1, n + 1):
                k = end - np.arange(end)
                last = np.array(until) + whole[:end, end] + (k - 1) * math.log(1 - change)
                until.append(logsumexp(last) + (math.log(change) if end < n else 0))
            best = max(best, until[n])
    return best - constant(n)


def sizes(x):
    """Sizes of steps after 10 % to 90 % of the windows, in standard deviations about both levels."""
    found = {}
    for k in range(math.ceil(len(x) / 10), 9 * len(x) // 10 + 1):
        before, after = x[:k], x[k:]
        spread = (np.sum((before - before.mean()) ** 2) + np.sum((after - after.mean()) ** 2)) / (len(x) - 2)
        found[k] = abs(after.mean() - before.mean()) / math.sqrt(max(spread, np.finfo(float).tiny))
    return found


def likelihoods(values, steps):
    """Logarithms of the largest likelihoods over the Gaussian noises, without a step and with each, by generalised least squares."""
    n = len(values)
    without, within = -math.inf, [-math.inf] * len(steps)
    for covariance in covariances(n):
        root = np.linalg.cholesky(covariance)
        y, level = np.linalg.solve(root, values), np.linalg.solve(root, np.ones(n))

        def log_likelihood(design):
            left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
            squares = max(left @ left, np.finfo(float).eps * (y @ y), np.finfo(float).tiny)
            return -n / 2 * math.log(squares) - np.log(np.diag(root)).sum()

        without = max(without, log_likelihood(level[:, None]))
        for i, k in enumerate(steps):
            step = np.linalg.solve(root, (np.arange(n) >= k).astype(float))
            within[i] = max(within[i], log_likelihood(np.column_stack([level, step])))
    return without, within


def aligned(x):
    """Blocks between two of which the largest step lies; of each step between blocks its windows and its size."""
    every = sizes(x)
    size = max(1, math.ceil(len(x) / 120))
    offset = max(every, key=lambda k: (every[k], k)) % size
    values = x[offset : offset + (len(x) - offset) // size * size].reshape(-1, size).mean(axis=1)
    steps = {k: s for k, s in every.items() if k % size == offset and k < offset + size * len(values)}
    return values, steps, lambda chosen: likelihoods(values, [(k - offset) // size for k in chosen])


def sudden(x):
    """The most likely sudden step that levels which come back do not explain: windows before it, levels before and after; or None."""
    values, steps, judged = aligned(x)
    large = [k for k, size in steps.items() if size > 3]
    if not large:
        return None
    without, within = judged(large)
    found = {k: one for k, one in zip(large, within) if 2 * (one - without) > 16}
    if not found:
        return None
    k = max(found, key=lambda k: (found[k], k))
    clear = any(steps[k] > 3.5 for k in found)
    if not (clear or 2 * (found[k] - levels_anew(values)) > 10) or (len(x) < 120 and flips_explain(x, k, found[k])):
        return None
    return k, x[:k].mean(), x[k:].mean()


def slow_seconds(x):
    """Log likelihood of a mixture of two normal distributions of equal variance, by expectation and maximisation."""
    n, best = len(x), -math.inf
    for quantile in (0.1, 0.5, 0.9):
        second = (x > np.sort(x)[int((n - 1) * quantile)]).astype(float)
        for _ in range(30):
            weights = np.array([1 - second, second])
            levels = weights @ x / np.maximum(weights.sum(axis=1), 1e-9)
            variance = max(np.sum(weights * (x - levels[:, None]) ** 2) / n, 1e-4 * x.var())
            share = min(max(second.mean(), 1 / n), 1 - 1 / n)
            logs = stats.norm.logpdf(x[:, None], levels, math.sqrt(variance)) + np.log([1 - share, share])
            best = max(best, logsumexp(logs, axis=1).sum())
            second = np.exp(logs[:, 1] - logsumexp(logs, axis=1))
    return best - constant(n)


def flips_explain(x, k, step):
    """Whether flips explain a series better than a step of this log likelihood, or one after k windows under rare slow seconds."""
    flips = two_plans(x)
    left = np.concatenate([x[:k] - x[:k].mean(), x[k:] - x[k:].mean()])
    return step <= flips and 2 * (slow_seconds(left) - flips) <= 10


def only_flips(x, k):
    values, steps, judged = aligned(x)
    return len(x) < 120 and flips_explain(x, k, max(judged(list(steps))[1]))


def steadiness(mean, x, relevant=0.01, several=False):
    """Steady or not, None where too short to tell, and the change that stands out as a share of the earlier level."""
    n = len(x)
    if n < SHORTEST:
        return None, 0.0
    cosines = 4 if n < 120 else 6
    steps, trends = {(4, False): (88, 39), (6, False): (50, 17), (4, True): (92, 56), (6, True): (41, 21)}[cosines, several]
    changes = []
    for twentieth in range(2, 19):
        k = math.floor(n * twentieth / 20 + 0.5)
        size, found = statistic(x, np.where(np.arange(n) < k, 0.0, 1.0), 1, cosines)
        changes.append((found / steps, -size * (n - k) / n, size * k / n, "step", k))
    size, found = statistic(x, (np.arange(n) + 0.5) / n, 2, cosines)
    changes.append((found / trends, -size / 2, size / 2, "trend", 0))
    step = sudden(x)
    if step and abs(step[2] - step[1]) > relevant * abs(mean):
        changes = [(math.inf, *step[1:], "sudden", 0)]
    changes = [c for c in changes if c[0] > 1 and abs(c[2] - c[1]) > relevant * abs(mean)]
    steps = [c for c in changes if c[3] == "step"]
    if steps and only_flips(x, max(steps)[4]):
        changes = [c for c in changes if c[3] == "trend"]
    if not changes:
        return True, 0.0
    _, before, after, *_ = max(changes)
    if mean + before > 0:
        return False, (max(mean + after, 0.0) - mean - before) / (mean + before)
    return False, (after - before) / abs(mean) if mean else 0.0


def estimate(value, low=None, high=None, doubt=False):
    kind = "none" if low is None else "provisional" if doubt else "interval"
    return {"value": value, "low": low, "high": high, "kind": kind}


def about_mean(value, values, x, seconds):
    error = mean_error(x, seconds)
    if error is None or np.all(np.abs(x) <= 1e-12 * abs(value)) or steadiness(*centred(values))[0] is False:
        return estimate(value)
    se, df, wanders = error
    margin = stats.t.ppf(0.5 + LEVEL / 2, df) * se
    return estimate(value, value - margin, value + margin, seconds < RELIABLE - 0.5 or wanders)


def centred(values):
    """The mean, rounded once, and what is left without it."""
    about = math.fsum(values) / len(values) if len(values) else 0.0
    return about, np.array(values, float) - about


def mean(values):
    about, x = centred(values)
    return about_mean(about, values, x, len(values)) if len(values) else estimate(0.0)


def throughput(counts, widths):
    counts, widths = np.array(counts, float), np.array(widths, float)
    if widths.sum() <= 0:
        return estimate(0.0)
    rate = counts.sum() / widths.sum()
    whole = widths >= widths.mean() / 2
    counts, widths = counts[whole], widths[whole]
    x = (counts - rate * widths) / widths.mean()
    answer = about_mean(rate, counts / widths, x - x.mean(), widths.sum())
    if answer["low"] is None:
        return answer
    if answer["low"] <= 0:
        return estimate(rate)
    answer["low"] = min(max(answer["low"], min(counts / widths)), rate)
    answer["high"] = max(min(answer["high"], max(counts / widths)), rate)
    return answer


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

    def error(self, seconds):
        return mean_error(self.x, seconds) or (math.sqrt(self.counting / self.n), 4 if seconds >= LONG - 0.5 else 2, False)


def percentile(samples, q):
    windows, whole = [Histogram(s) for s in samples], Histogram(np.concatenate(samples) if samples else [])
    if whole.total == 0:
        return estimate(0.0)
    value, rarer = whole.quantile(q), min(q, 1 - q)
    if len(windows) < SHORTEST or whole.total * rarer < 10 or whole.least == whole.most:
        return estimate(value)
    here = Beyond(windows, value)
    if steadiness(rarer, here.x, 0.1, several=True)[0] is False:
        return estimate(value)
    se, df, wanders = here.error(len(windows))
    margin = stats.t.ppf(0.5 + LEVEL / 2, df) * se
    low_q, high_q = max(q - margin, 0.0), min(q + margin, 1.0)
    low, high = whole.quantile(low_q), whole.quantile(high_q)
    if whole.place(low_q)[1] == whole.place(high_q)[1]:
        low, high = whole.bounds(low_q)
    doubt = len(windows) < RELIABLE or wanders
    return estimate(value, min(low, value), max(high, value), doubt)
