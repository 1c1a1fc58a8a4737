#!/usr/bin/env python3
"""How often the intervals that `mydyno report` prints hold the truth, on run folders written from simulated servers.

report_coverage.py BINARY [SERIES_PER_CELL [SEED]]      (python3 with numpy)

Each series is a run folder on disk with one measured step: seconds with Poisson counts about 100 transactions whose mean
varies by a tenth with the noise. The noises are written here a second time, from their descriptions in
docs/journal/statistics.md. Prints a Markdown table; fails where an interval that promises 95 % is outside 92 to 98 % by more
than chance explains, or where a noise that breaks the assumption is not reported in at least 80 % of the runs.
"""
import base64
import concurrent.futures
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

LENGTHS = (60, 240, 600)
CREATED = "2026-01-01T00:00:00.000Z"
MADE_BY = {"version": "0.1.0", "commit": "simulated"}


def ar1(rng, n, phi):
    values, noise = np.empty(n), rng.normal(size=n) * np.sqrt(1 - phi * phi)
    values[0] = rng.normal()
    for t in range(1, n):
        values[t] = phi * values[t - 1] + noise[t]
    return values


def levels(rng, n, seconds):
    first = rng.integers(1, seconds + 1)
    return rng.normal(size=n // seconds + 2)[(np.arange(n) + seconds - first) // seconds] + 0.3 * rng.normal(size=n)


def bimodal(rng, n):
    return rng.choice([-1, 1]) * np.where(np.cumsum(rng.random(n) < 0.1) % 2, -1, 1) + 0.3 * rng.normal(size=n)


def spiky(rng, n):
    return rng.normal(size=n) - (rng.random(n) < 0.05) * rng.exponential(5, n) + 0.25


def pink(rng, n):
    return sum(ar1(rng, n, np.exp(-(0.5**octave))) for octave in range(8)) / np.sqrt(8)


def stalls(rng, n, period, length, depth):
    low, at = np.zeros(n + period + length + 1), int(period * rng.random())
    while at < n:
        low[at : at + length] = depth
        at += length + round((period - length) * rng.uniform(0.75, 1.25))
    return rng.normal(size=n) + depth * length / period - low[:n]


def drifting(rng, n):
    walk = 3 * ar1(rng, n, 0.999)
    return walk + rng.normal(size=n), walk.mean()


def late_drop(rng, n, at):
    """Half of the throughput (five tenths of a mean of 100, in units of its tenth) is lost for the rest of the run."""
    return rng.normal(size=n) * 0.4 - 5.0 * (np.arange(n) >= at * n), None


NOISES = {
    "independent": lambda rng, n: rng.normal(size=n),
    "AR(1) 0.3": lambda rng, n: ar1(rng, n, 0.3),
    "AR(1) 0.5": lambda rng, n: ar1(rng, n, 0.5),
    "AR(1) 0.7": lambda rng, n: ar1(rng, n, 0.7),
    "AR(1) 0.9": lambda rng, n: ar1(rng, n, 0.9),
    "AR(1) 0.95": lambda rng, n: ar1(rng, n, 0.95),
    "bimodal": bimodal,
    "spiky": spiky,
    "wandering": lambda rng, n: 0.2 * ar1(rng, n, 0.95) + rng.normal(size=n),
    "levels of 30 s": lambda rng, n: levels(rng, n, 30),
    "levels of 2 min": lambda rng, n: levels(rng, n, 120),
    "pink": pink,
    "checkpoints": lambda rng, n: stalls(rng, n, 30, 6, 2),
    "stalls": lambda rng, n: stalls(rng, n, 12, 1, 10),
    "drifting": drifting,
    "a drop at 60 %": lambda rng, n: late_drop(rng, n, 0.6),
    "a drop at 75 %": lambda rng, n: late_drop(rng, n, 0.75),
    "a drop at 90 %": lambda rng, n: late_drop(rng, n, 0.9),
}


def assumption_broken(name, n):
    """Whether something changes more slowly than over a quarter of the run; the truth of *drifting* is its own stretch."""
    return name.startswith("a drop") or (name == "levels of 2 min" and n < 480)


def histogram(count, ns):
    """`count` times of `ns` in HdrHistogram's V2 form with two significant digits."""
    octave = (ns | 255).bit_length() - 8
    index = (octave + 1) * 128 + (ns >> octave) - 128
    payload = b""
    for number in (2 * index - 1, 2 * count):
        while number > 127:
            payload, number = payload + bytes([number & 127 | 128]), number >> 7
        payload += bytes([number])
    head = struct.pack(">IIIIQQd", 0x1C849313, len(payload), 0, 2, 1, 3_600_000_000_000, 1.0)
    coded = base64.b64encode(head + payload).decode().rstrip("=")
    return {"count": count, "sum_ns": count * ns, "min_ns": ns, "max_ns": ns, "hdr": coded}


def interval(phase, start_s, width_s, count):
    """A line of intervals.jsonl of one connection that is always busy."""
    count = int(count)
    times = histogram(count, int(1e9 * width_s / max(count, 1))) if count else None
    line = {
        "step": 0, "phase": phase, "start_s": start_s, "width_s": width_s, "transactions": count, "queries": count,
        "client": {"user_us": 1000, "system_us": 1000, "waits": count, "voluntary_switches": count,
                   "involuntary_switches": 0, "resident_bytes": 20_000_000, "threads": 3},
        "operations": {"point_select": {"response": times, "service": times}} if times else {},
    }
    if phase != "drain":
        line["arrivals"] = {"intended": count, "started": count, "queued": 0, "in_flight": 1}
    if times:
        line["lateness"] = histogram(count, 200)
    return line


def write(folder, counts):
    """A run folder of one step with one connection, a second an interval."""
    n = len(counts)
    document = {"created": CREATED, "mydyno": MADE_BY}
    closed = {"kind": "closed"}
    plan = {
        "schema": "mydyno.plan/1", **document, "workload": {"name": "oltp_point_select", "options": {}},
        "target": {"kind": "server", "transport": "tcp", "address": "127.0.0.1:3306", "user": "root"},
        "steps": [{"connections": 1, "workers": 1, "arrivals": closed}], "order": [0],
        "warmup": {"mode": "fixed", "time_s": 1.0}, "time_s": float(n), "connections": {"reconnect": True},
        "wait": {"backend": "epoll", "scheduling": "batch"}, "seed": 1, "database": "mydyno",
        "percentiles": [50.0, 99.0], "observe": False, "allow": {"load": False, "write": False},
    }
    manifest = {
        "schema": "mydyno.manifest/1", **document, "run": "simulated", "plan": plan, "argv": ["mydyno", "bench"], "facts_digest": "",
        "fingerprint": {"data": "0" * 16, "operations": "0" * 16},
        "clock": {"name": "CLOCK_MONOTONIC", "source": None, "read_ns": 20.0},
        "operations": [{"name": "point_select", "kind": "transaction", "sql": "SELECT 1"}],
    }
    phases = [("connect", 0.0), ("warmup", 0.1), ("measure", 1.1), ("drain", 1.1 + n)]
    events = [{"at_s": at, "event": "phase", "step": 0, "phase": phase} for phase, at in phases]
    events.append({"at_s": 1.2 + n, "event": "end", "how": "complete"})
    intervals = [interval("warmup", 0.1, 1.0, 100), *(interval("measure", 1.1 + t, 1.0, c) for t, c in enumerate(counts)),
                 interval("drain", 1.1 + n, 0.01, 1)]
    os.mkdir(folder)
    for name, lines in [("manifest.json", [manifest]), ("events.jsonl", events), ("intervals.jsonl", intervals)]:
        with open(os.path.join(folder, name), "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def one(binary, top, name, n, seed):
    """Kind of the interval in the report, and whether it holds the truth."""
    rng = np.random.default_rng([seed, n, sorted(NOISES).index(name)])
    made = NOISES[name](rng, n)
    series, level = made if isinstance(made, tuple) else (made, 0.0)
    counts = np.maximum(rng.poisson(np.maximum(100 + 10 * series, 0)), 1)
    folder = os.path.join(top, f"{sorted(NOISES).index(name)}-{n}-{seed}")
    write(folder, counts)
    ended = subprocess.run([binary, "report", folder, "--json"], capture_output=True, text=True,
                           env={**os.environ, "MYDYNO_STATE": os.path.join(top, "state")})
    if ended.returncode != 0:
        raise SystemExit(f"{name}, {n} s: status {ended.returncode}: {ended.stderr}")
    estimate = json.loads(ended.stdout)["steps"][0]["throughput"]["transactions_per_s"]
    shutil.rmtree(folder)
    if estimate.get("low") is None:
        return "none", None
    kind = "provisional" if estimate.get("level") is None else "promised"
    return kind, level is not None and estimate["low"] <= 100 + 10 * level <= estimate["high"]


def cell(binary, top, name, n, count, seed):
    outcomes = [one(binary, top, name, n, seed + i) for i in range(count)]
    return {kind: [held for k, held in outcomes if k == kind] for kind in ("promised", "provisional", "none")}


def main():
    binary = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    wrong, rows = [], {}
    with tempfile.TemporaryDirectory(prefix="coverage") as top, concurrent.futures.ThreadPoolExecutor(3) as pool:
        jobs = {(name, n): pool.submit(cell, binary, top, name, n, count, seed) for name in NOISES for n in LENGTHS}
        for (name, n), job in jobs.items():
            kinds = job.result()
            promised, provisional = kinds["promised"], kinds["provisional"]
            share = 100 * len(promised) / count
            if n < 240:
                text = f"~ {100 * np.mean(provisional):.0f} %, none {len(kinds['none'])}" if provisional else f"none {count}"
                if promised:
                    wrong.append(f"{name}, {n} s: {len(promised)} promise a level")
            else:
                text = f"{100 * np.mean(promised):.1f} % of {share:.0f} %" if promised else "none of 0 %"
            if assumption_broken(name, n):
                text += " (says so)" if 100 - share >= 80 else " (**does not say so**)"
                wrong += [f"{name}, {n} s: said in {100 - share:.0f} %"] if share > 20 else []
            elif name != "drifting" and len(promised) >= 30:
                # Twice the standard error of a share of 95 % beside the band.
                slack = 2 * np.sqrt(0.05 * 0.95 / len(promised))
                if not 0.92 - slack <= np.mean(promised) <= min(0.98 + slack, 1.0):
                    wrong.append(f"{name}, {n} s: {text}")
            rows.setdefault(name, []).append(text)
            print(f"{name}, {n} s: {text}", file=sys.stderr, flush=True)
    print(f"""
## Coverage through `mydyno report`
Written by `tests/sim/report_coverage.py target/release/mydyno {count} {seed}`: {count} run folders a cell on disk, Poisson counts about 100
a second whose mean varies by a tenth with noises written a second time, and the throughput's interval that `mydyno report
--json` prints. From 240 s: the share of the intervals with a level that hold the truth, of the share of runs that got one;
a run that breaks the assumption *says so* when it gets none. At 60 s no level is promised: the share of provisional (~)
intervals that hold it, and runs without any. A drop has no single truth.
""")
    print("| noise | " + " | ".join(f"{n} s" for n in LENGTHS) + " |\n|---|" + "---|" * len(LENGTHS))
    for name, texts in rows.items():
        print(f"| {name} | " + " | ".join(texts) + " |")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
