"""Writes distributions.json: exact probabilities of the distributions of keys in crates/workload.

Each is computed from its definition: Zipf's by summing i^-s, Pareto's from its distribution function, the bell as
Irwin and Hall's distribution in rational numbers, the special one as a mixture.
"""
import json
import math
import pathlib
from fractions import Fraction

import scipy
from scipy import stats


def cells(n, count):
    return [n * (i + 1) // count for i in range(count)]


def irwin_hall_cdf(x, terms):
    """P(sum of `terms` uniform numbers <= x), exactly; x is a Fraction."""
    x = min(max(x, Fraction(0)), Fraction(terms))
    total = sum((-1) ** j * math.comb(terms, j) * (x - j) ** terms for j in range(math.floor(x) + 1))
    return total / math.factorial(terms)


def bell(n, ends, terms):
    cdf = [irwin_hall_cdf(Fraction(terms * e, n), terms) for e in [0] + ends]
    return [float(b - a) for a, b in zip(cdf, cdf[1:])]


def zipf(n, ends, s):
    total = math.fsum(i**-s for i in range(1, n + 1))
    starts = [0] + ends[:-1]
    return [math.fsum(i**-s for i in range(a + 1, b + 1)) / total for a, b in zip(starts, ends)]


def pareto(n, ends, h):
    power = math.log(h) / math.log(1 - h)
    cdf = [(e / n) ** (1 / power) for e in [0] + ends]
    return [b - a for a, b in zip(cdf, cdf[1:])]


def special(n, ends, terms, percent, share):
    keys = max(1, n * percent // 100)
    first = n // 2 - n * percent // 200 + 1
    starts = [0] + ends[:-1]
    overlap = [max(0, min(b, first + keys - 1) - max(a + 1, first) + 1) for a, b in zip(starts, ends)]
    return [(1 - share) * p + share * o / keys for p, o in zip(bell(n, ends, terms), overlap)]


def case(name, n, ends, probabilities, **options):
    assert abs(sum(probabilities) - 1) < 1e-9, (name, sum(probabilities))
    freedom = sum(p > 0 for p in probabilities) - 1
    given = [[k.replace("_", "-"), str(v)] for k, v in options.items()]
    limit = float(stats.chi2.isf(1e-6, freedom))
    return {"name": name, "options": given, "n": n, "ends": ends, "probabilities": probabilities, "limit": limit}


out = []
ends = cells(10_000, 20)
out.append(case("uniform", 10_000, ends, [0.05] * 20, distribution="uniform"))
for n, s in [(30, 0.8), (30, 1.0), (30, 2.0), (30, 0.0), (100_000, 0.8), (100_000, 1.2), (100_000, 0.99)]:
    zipf_ends = list(range(1, n + 1)) if n == 30 else [1, 2, 3, 5, 10, 20, 50, 100, 300, 1000, 3000, 10_000, 30_000, n]
    out.append(case(f"zipfian {n} {s}", n, zipf_ends, zipf(n, zipf_ends, s), distribution="zipfian", rand_zipfian_exp=s))
for h in [0.2, 0.05, 0.5]:
    out.append(case(f"pareto {h}", 10_000, ends, pareto(10_000, ends, h), distribution="pareto", rand_pareto_h=h))
for terms in [12, 1, 2]:
    # The outermost cells of a bell of twelve are too rare to count: they are joined with their neighbours.
    bell_ends = ends if terms < 12 else [2500, 3000, 3500, 4000, 4500, 5000, 5500, 6000, 6500, 7000, 7500, 10_000]
    out.append(case(f"gaussian {terms}", 10_000, bell_ends, bell(10_000, bell_ends, terms), distribution="gaussian", rand_spec_iter=terms))
special_ends = [2500, 3500, 4000, 4500, 4900, 4950, 4960, 4980, 5000, 5020, 5040, 5050, 5100, 5500, 6000, 6500, 7500, 10_000]
out.append(case("special", 10_000, special_ends, special(10_000, special_ends, 12, 1, 0.75), distribution="special"))
out.append(case("special 10 50", 10_000, special_ends, special(10_000, special_ends, 12, 10, 0.5), distribution="special", rand_spec_pct=10, rand_spec_res=50))

path = pathlib.Path(__file__).with_name("distributions.json")
path.write_text(json.dumps(out, indent=1) + "\n")
print(f"{path}: {len(out)} cases, scipy {scipy.__version__}")
