"""Series of counts a second as servers' mechanisms make them, written without sight of the generators of crates/sim.

A noise gives rates relative to its mean as an array (series, seconds). `NOISES` adds the counts a second that stand for a rate
of 1, whether nothing changes more slowly than over a quarter of n seconds (True, False; None: on the edge, not judged), and the
truth: 1 by construction, "calibrate" the mean of a long simulation, "own" the mean of each series' own rates.
"""
import numpy as np


def ou(rng, m, n, tau):
    """Ornstein-Uhlenbeck, unit variance, sampled each second."""
    phi = np.exp(-1.0 / tau)
    x = np.empty((m, n))
    x[:, 0] = rng.standard_normal(m)
    e = rng.standard_normal((m, n)) * np.sqrt(1 - phi * phi)
    for t in range(1, n):
        x[:, t] = phi * x[:, t - 1] + e[:, t]
    return x


def shaped(rng, m, n, spectrum):
    """Gaussian noise of a given spectrum (of frequency in Hz), unit variance in all: a stretch of a much longer series."""
    size = 1 << int(np.ceil(np.log2(max(16 * n, 8192))))
    out = np.empty((m, n))
    f = np.fft.rfftfreq(size)
    weight = spectrum(np.maximum(f, 1.0 / size))
    amplitude = np.sqrt(weight)
    amplitude[0] = 0
    scale = np.sqrt(2 * np.sum(amplitude**2)) / size
    for i in range(m):
        z = (rng.standard_normal(len(f)) + 1j * rng.standard_normal(len(f))) * amplitude / np.sqrt(2)
        start = rng.integers(0, size - n)
        out[i] = np.fft.irfft(z, size)[start : start + n] / scale
    return out


def pink(floor_s):
    """1/f down to one change in `floor_s` seconds, flat below."""
    return lambda rng, m, n: 1 + 0.08 * shaped(rng, m, n, lambda f: 1 / np.maximum(f, 1.0 / floor_s))


def fractional(d):
    """Fractionally integrated noise, (1 - B)^-d, from 3,000 seconds of the past."""
    def make(rng, m, n):
        past = 3000
        k = np.arange(1, past + n)
        psi = np.concatenate([[1.0], np.cumprod((k - 1 + d) / k)])
        size = 1 << int(np.ceil(np.log2(2 * (past + n))))
        e = rng.standard_normal((m, past + n))
        x = np.fft.irfft(np.fft.rfft(e, size) * np.fft.rfft(psi, size), size)[:, past : past + n]
        return 1 + 0.06 * x
    return make


def lognormal_ou(tau, sd):
    return lambda rng, m, n: np.exp(sd * ou(rng, m, n, tau) - 0.5 * sd * sd)


def dwelling(mean_s, sd, fast=0.0):
    """Levels, each drawn anew, that last exponentially long."""
    def make(rng, m, n):
        change = rng.random((m, n)) < 1 - np.exp(-1.0 / mean_s)
        change[:, 0] = True
        fresh = rng.standard_normal((m, n))
        last = np.maximum.accumulate(np.where(change, np.arange(n), 0), axis=1)
        return 1 + sd * np.take_along_axis(fresh, last, axis=1) + fast * rng.standard_normal((m, n))
    return make


def two_plans(high_s, low_s, depth):
    """A plan that flips: exponential times in a fast and in a slow state, slower by `depth`, exact within each second."""
    def make(rng, m, n):
        share = low_s / (high_s + low_s)
        out = np.empty((m, n))
        for i in range(m):
            low = rng.random() < share
            t, edges = 0.0, []
            while t < n:
                d = rng.exponential(low_s if low else high_s)
                edges.append((t, min(t + d, n), low))
                t, low = t + d, not low
            slow = np.zeros(n)
            for a, b, low_ in edges:
                if low_:
                    cover(slow, a, b)
            out[i] = 1 - depth * slow
        return out / (1 - depth * share)
    return make


def cover(seconds, a, b):
    """Adds to each second the part of it that lies between a and b."""
    first, last = int(a), min(int(np.ceil(b)), len(seconds))
    for s in range(first, last):
        seconds[s] += max(0.0, min(b, s + 1) - max(a, s))


def events(gap, length, depth, catch_up=0.0):
    """Disturbances after random gaps: `depth` of the rate is lost for `length`; a share of it is made up for in the next two seconds."""
    def make(rng, m, n):
        out = np.empty((m, n))
        for i in range(m):
            lost = np.zeros(n + 400)
            t = -200 + rng.random() * 50
            while t < n + 3:
                t += gap(rng)
                d = length(rng)
                if t + d > 0:
                    cover(lost, max(t, 0), t + d)
                t += d
            rate = 1 - depth * np.minimum(lost, 1)
            rate[1:] += catch_up * depth * lost[:-1] / 2
            rate[2:] += catch_up * depth * lost[:-2] / 2
            out[i] = rate[:n]
        return out
    return make


def ramps(period_s, dip_s, depth, jitter):
    """Checkpoints: the rate falls linearly over `dip_s` seconds by `depth` and recovers at once, about every `period_s`."""
    def make(rng, m, n):
        out = np.ones((m, n))
        for i in range(m):
            t = -period_s * (1 + rng.random())
            while t < n:
                start = max(0, int(np.ceil(t)))
                for s in range(start, min(n, int(t + dip_s))):
                    out[i, s] -= depth * (s - t) / dip_s
                t += period_s * (1 + jitter * rng.uniform(-1, 1))
        return out
    return make


def dirty_pages(rng, m, n):
    """A limit cycle: writes fill the buffer, above the high mark flushing takes a third of the rate, until the low mark."""
    steps = n + 300
    fill = rng.uniform(0.3, 0.9, m)
    flushing = rng.random(m) < 0.4
    slow = ou(rng, m, steps, 4.0)
    out = np.empty((m, steps))
    for t in range(steps):
        rate = np.where(flushing, 0.67, 1.0) * (1 + 0.03 * slow[:, t])
        fill = fill + 0.035 * rate - np.where(flushing, 0.075, 0.0) * (1 + 0.2 * rng.standard_normal(m))
        flushing = np.where(fill > 0.9, True, np.where(fill < 0.4, False, flushing))
        out[:, t] = rate
    return out[:, 300:]


def heavy(df, sd):
    """Independent seconds with rare large losses and gains (Student's t), between 0 and 2."""
    return lambda rng, m, n: np.clip(1 + sd * rng.standard_t(df, (m, n)), 0, 2)


def skewed(rng, m, n):
    """Seconds that lose an exponential share (garbage collection, fsync), one in four."""
    return 1 - (rng.random((m, n)) < 0.25) * np.minimum(rng.exponential(0.15, (m, n)), 0.9)


def constant(rng, m, n):
    return np.ones((m, n))


def gamma(shape):
    return lambda rng, m, n: rng.gamma(shape, 1.0 / shape, (m, n))


def renewal(sigma, rate):
    """Counts themselves: one connection whose transactions take log-normal times."""
    def make(rng, m, n):
        out = np.empty((m, n))
        for i in range(m):
            gaps = rng.lognormal(0, sigma, int((n + 40) * rate * 1.6) + 400) * np.exp(-0.5 * sigma * sigma) / rate
            ends = np.cumsum(gaps) - 30
            while ends[-1] < n:
                more = rng.lognormal(0, sigma, 1000) * np.exp(-0.5 * sigma * sigma) / rate
                ends = np.concatenate([ends, ends[-1] + np.cumsum(more)])
            out[i] = np.bincount(ends[(ends >= 0) & (ends < n)].astype(int), minlength=n)
        return out
    return make


def walk(sd_run):
    """Random walk that moves by `sd_run` over the run; its truth is its own stretch."""
    return lambda rng, m, n: 1 + np.cumsum(rng.standard_normal((m, n)), axis=1) * sd_run / np.sqrt(n)


def sine(periods, size):
    return lambda rng, m, n: 1 + size * np.sin(2 * np.pi * (periods * np.arange(n) / n + rng.random((m, 1))))


def line(size):
    return lambda rng, m, n: np.tile(1 + size * np.arange(n) / n, (m, 1)) * (1 + 0.03 * ou(rng, m, n, 3))


def settling(size):
    return lambda rng, m, n: np.tile(1 - size * np.exp(-3 * np.arange(n) / n), (m, 1)) * (1 + 0.03 * ou(rng, m, n, 3))


def drop(at, size):
    return lambda rng, m, n: np.tile(np.where(np.arange(n) >= at * n, 1 - size, 1.0), (m, 1)) * (1 + 0.03 * ou(rng, m, n, 3))


always = lambda n: True
never = lambda n: False
since = lambda s: lambda n: True if n >= s else None


def levels_of(mean_s):
    """Levels of exponential length keep the assumption where those longer than a quarter of the run take less than a quarter of
    the time (2.7 mean lengths), and break it where one lasts half of the run."""
    return lambda n: True if n / 4 >= 2.7 * mean_s else False if n <= 2 * mean_s else None



NOISES = {
    "Poisson 8/s": (constant, 8, always, None),
    "Poisson 100/s": (constant, 100, always, None),
    "Poisson 2,000/s": (constant, 2000, always, None),
    "overdispersed 100/s": (gamma(20), 100, always, None),
    "renewal, log-normal 1.5": (renewal(1.5, 40), None, always, 40.0),
    "OU 3 s, log-normal 15 %": (lognormal_ou(3, 0.15), 1000, always, None),
    "OU 10 s, log-normal 10 %": (lognormal_ou(10, 0.10), 1000, since(120), None),
    "OU 20 s, log-normal 10 %": (lognormal_ou(20, 0.10), 1000, since(240), None),
    "OU 20 s, Poisson 100/s": (lognormal_ou(20, 0.08), 100, since(240), None),
    "pink to 15 s": (pink(15), 1000, always, None),
    "pink to 60 s": (pink(60), 1000, since(240), None),
    "pink to 60 s, Poisson 100/s": (pink(60), 100, since(240), None),
    "pink to 150 s": (pink(150), 1000, since(600), None),
    "fractional d 0.2": (fractional(0.2), 1000, lambda n: None, None),
    "fractional d 0.4": (fractional(0.4), 1000, lambda n: None, None),
    "pink to an hour": (pink(3600), 1000, never, None),
    "levels, mean 10 s": (dwelling(10, 0.08), 1000, levels_of(10), None),
    "levels, mean 30 s": (dwelling(30, 0.08), 1000, levels_of(30), None),
    "levels, mean 30 s, Poisson 100/s": (dwelling(30, 0.10), 100, levels_of(30), None),
    "levels, mean 2 min": (dwelling(120, 0.10), 1000, levels_of(120), None),
    "two plans 10/10 s, 15 %": (two_plans(10, 10, 0.15), 1000, always, None),
    "two plans 10/10 s, 15 %, clear": (two_plans(10, 10, 0.15), 20000, always, None),
    "two plans 10/10 s, 15 %, Poisson 100/s": (two_plans(10, 10, 0.15), 100, always, None),
    "two plans 5/5 s, 30 %": (two_plans(5, 5, 0.30), 2000, always, None),
    "two plans 20/4 s, 30 %": (two_plans(20, 4, 0.30), 1000, always, None),
    "two plans 4/20 s, 30 %": (two_plans(4, 20, 0.30), 1000, always, None),
    "stalls at random, 20 s": (events(lambda r: r.exponential(19), lambda r: r.uniform(0.5, 2), 1.0), 500, always, "calibrate"),
    "stalls at random, caught up": (events(lambda r: r.exponential(15), lambda r: r.uniform(0.3, 1), 1.0, 0.6), 500, always, "calibrate"),
    "stalls each 15 s": (events(lambda r: r.uniform(12, 16), lambda r: 1.0, 0.9), 500, always, "calibrate"),
    "rare long stalls": (events(lambda r: r.exponential(60), lambda r: r.uniform(2, 5), 0.9), 500, since(240), "calibrate"),
    "checkpoints each 15 s": (ramps(15, 6, 0.3, 0.1), 500, always, "calibrate"),
    "checkpoints each 30 s": (ramps(30, 10, 0.3, 0.15), 500, since(120), "calibrate"),
    "checkpoints each 60 s": (ramps(60, 15, 0.4, 0.2), 500, since(240), "calibrate"),
    "dirty pages": (dirty_pages, 1000, always, "calibrate"),
    "heavy tails": (heavy(2.5, 0.05), 1000, always, "calibrate"),
    "skewed seconds": (skewed, 500, always, "calibrate"),
    "random walk 10 %": (walk(0.10), 1000, never, "own"),
    "random walk 20 %, Poisson 100/s": (walk(0.20), 100, never, "own"),
    "sine, half a period, 10 %": (sine(0.5, 0.10), 1000, never, "own"),
    "sine, one period, 10 %": (sine(1.0, 0.10), 1000, never, "own"),
    "line up 15 %": (line(0.15), 1000, never, "own"),
    "line down 15 %": (line(-0.15), 1000, never, "own"),
    "settles from -30 %": (settling(0.3), 1000, never, "own"),
}
for _at in (60, 75, 90):
    NOISES[f"falls by half at {_at} %"] = (drop(_at / 100, 0.5), 100, never, "own")
    NOISES[f"falls by a fifth at {_at} %"] = (drop(_at / 100, 0.2), 1000, never, "own")

# Noises of 4 % for the detection of changes, (series, seconds) about 0 with unit variance, before Poisson counts of 5,000/s.
DETECT = {
    "independent": lambda rng, m, n: rng.standard_normal((m, n)),
    "OU 3 s": lambda rng, m, n: ou(rng, m, n, 3),
    "OU 10 s": lambda rng, m, n: ou(rng, m, n, 10),
    "OU 20 s": lambda rng, m, n: ou(rng, m, n, 20),
    "pink to 60 s": lambda rng, m, n: shaped(rng, m, n, lambda f: 1 / np.maximum(f, 1 / 60)),
    "half independent, half OU 10 s": lambda rng, m, n: (rng.standard_normal((m, n)) + ou(rng, m, n, 10)) / np.sqrt(2),
    "levels, mean 10 s": lambda rng, m, n: dwelling(10, 1.0)(rng, m, n) - 1,
    "two plans 10/10 s": lambda rng, m, n: (two_plans(10, 10, 0.1)(rng, m, n) - 1) / 0.0509,
    "heavy tails": lambda rng, m, n: np.clip(rng.standard_t(4, (m, n)) / np.sqrt(2), -8, 8),
    "skewed seconds": lambda rng, m, n: (0.25 - (rng.random((m, n)) < 0.25) * rng.exponential(1, (m, n))) / 0.661,
    "checkpoints each 15 s": lambda rng, m, n: (ramps(15, 6, 0.3, 0.1)(rng, m, n) - 0.945) / 0.098,
}
PLACES = (0.10, 0.12, 0.17, 0.25, 0.33, 0.42, 0.50, 0.58, 0.67, 0.75, 0.83, 0.88, 0.90)


def make(name, m, n, seed):
    """Counts (m, n) and the true counts a second of each series."""
    rates, scale, _, truth = NOISES[name]
    rng = np.random.default_rng([seed, n, int.from_bytes(name.encode()[-6:], "big"), len(name)])
    r = rates(rng, m, n)
    if scale is None:
        return r.astype(np.int64), np.full(m, truth)
    r = np.maximum(r, 0)
    counts = rng.poisson(r * scale)
    if truth == "own":
        return counts, scale * r.mean(axis=1)
    if truth == "calibrate":
        return counts, np.full(m, scale * calibrated(name))
    return counts, np.full(m, float(scale))


_KNOWN = {}


def calibrated(name):
    if name not in _KNOWN:
        rng = np.random.default_rng(987654321)
        _KNOWN[name] = float(np.maximum(NOISES[name][0](rng, 2000, 900), 0).mean())
    return _KNOWN[name]


def make_change(name, m, n, place, factor, seed):
    rng = np.random.default_rng([seed, n, int(place * 100), int(factor * 100), len(name)])
    rate = 1 + 0.04 * DETECT[name](rng, m, n)
    k = int(round(place * n))
    rate[:, k:] *= factor
    return rng.poisson(np.maximum(rate, 0) * 5000)
