#!/usr/bin/env python3
"""Coverage of intervals, and false and true alarms of steadiness, on the noises of mechanisms.py.

other_noises.py JUDGE [SERIES_PER_CELL [SEED]]      (python3 with numpy)

JUDGE is target/release/examples/judge (cargo build --release -p mydyno-sim --example judge). Prints three Markdown tables;
fails where a bound of `BOUNDS` is missed by more than chance explains.
"""
import concurrent.futures
import os
import subprocess
import sys

import numpy as np

import mechanisms

LENGTHS = (60, 240, 600)
BATCH = 250
# Shares in per cent: of intervals with a level that hold, of runs outside the assumption that say so, of steady runs that are called
# unsteady, of changes that are found.
BOUNDS = {"holds": (92, 98), "says so": 80, "false alarms": 7, "found": 90}


def judge(binary, counts):
    """Kind of the interval, its ends, steadiness, change and words of each series."""
    text = "".join(" ".join(map(str, row)) + "\n" for row in counts.tolist())
    ended = subprocess.run([binary], input=text, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in ended.stdout.splitlines()]


def batch(binary, name, n, seed):
    """For each series of a batch: kind of the interval, whether it holds the truth, whether it is called unsteady."""
    counts, truth = mechanisms.make(name, BATCH, n, seed)
    return [(kind, kind != "none" and float(low) <= t <= float(high), steady == "false")
            for (kind, low, high, steady, _, _), t in zip(judge(binary, counts), truth)]


def found(binary, name, n, place, factor, series, seed):
    rows = judge(binary, mechanisms.make_change(name, series, n, place, factor, seed))
    return 100 * np.mean([row[3] == "false" for row in rows])


def slack(percent, of):
    """Twice the standard error of a share, in per cent."""
    return 2 * np.sqrt(percent * (100 - percent) / max(of, 1))


def of_noise(name, n, rows, missed):
    """A cell: alarms, then coverage of what promises a level and its share; at 60 s, of provisional intervals."""
    promised = [held for kind, held, _ in rows if kind == "level"]
    provisional = [held for kind, held, _ in rows if kind == "provisional"]
    alarms, share = 100 * np.mean([row[2] for row in rows]), 100 * len(promised) / len(rows)
    assumed = mechanisms.NOISES[name][2](n)
    holds = 100 * np.mean(promised) if promised else None
    if assumed and alarms > BOUNDS["false alarms"] + slack(BOUNDS["false alarms"], len(rows)):
        missed.append(f"{name}, {n} s: {alarms:.1f} % false alarms")
    if assumed and holds is not None and len(promised) >= 100:
        low, high = BOUNDS["holds"]
        if not low - slack(low, len(promised)) <= holds <= high + slack(high, len(promised)):
            missed.append(f"{name}, {n} s: {holds:.1f} % hold")
    if assumed is False and n >= 240 and 100 - share < BOUNDS["says so"] - slack(80, len(rows)):
        missed.append(f"{name}, {n} s: says so in {100 - share:.0f} %")
    mark = {True: "", False: " (outside)", None: " (edge)"}[assumed]
    if holds is None:
        held = f"~ {100 * np.mean(provisional):.1f} %" if provisional else "none"
    else:
        held = f"{holds:.1f} % of {share:.0f} %"
    return f"{alarms:.1f} %; {held}{mark}"


def table(heads, rows):
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def main():
    binary = os.path.abspath(sys.argv[1])
    series = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    missed = []
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = {(name, n): [pool.submit(batch, binary, name, n, seed * 100000 + k) for k in range(series // BATCH)]
                for name in mechanisms.NOISES for n in LENGTHS}
        changes = {(name, n, factor): [pool.submit(found, binary, name, n, at, factor, series // 5, seed) for at in mechanisms.PLACES]
                   for name in mechanisms.DETECT for n in LENGTHS for factor in (0.8, 1.2)}
        cell = lambda name, n: of_noise(name, n, [row for job in jobs[name, n] for row in job.result()], missed)
        table(["noise", *(f"{n} s" for n in LENGTHS)],
              ([name, *(cell(name, n) for n in LENGTHS)] for name in mechanisms.NOISES))
        print()
        rows = []
        for (name, n, factor), cells in changes.items():
            shares = [job.result() for job in cells]
            rows.append([name, str(n), f"{100 * (factor - 1):+.0f} %", *(f"{share:.0f}" for share in shares)])
            missed += [f"{name}, {n} s, {factor} at {at}: found {share:.0f} %" for at, share in zip(mechanisms.PLACES, shares)
                       if share < BOUNDS["found"] - slack(BOUNDS["found"], series // 5)]
        table(["noise of 4 %", "s", "change", *(f"{100 * at:.0f} %" for at in mechanisms.PLACES)], rows)
    print("\n".join(missed), file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
