#!/usr/bin/env python3
"""Time to a decision: slices of 1 s in turns against rows of 15 s with a warm-up, at the same δ, for three kinds of load.

    bench/decision_time.py [--budget 15m] [--delta 5%] [--repeats 3] [--only LOAD] [--out DIR]

The arms are equal, so that the right decision is that no effect of δ exists. An experiment that its budget ends undecided counts with the
budget, as a lower limit. Both ways are interleaved. Exit status 1 when something that must hold does not.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from live_aa import definition
from verdicts import Verdicts, add_binary, spread

LOADS = {
    "point selects": ("oltp_point_select", 8),
    "read-write": ("oltp_read_write", 8),
    "updates": ("oltp_update_non_index", 4),
}
WAYS = {
    "slices": ["--mode", "alternate", "--slice", "1s", "--settle", "250ms", "--warmup", "3s"],
    "rows": ["--rows", "--slice", "15s", "--settle", "2s", "--warmup", "5s"],
}


def decide(options, load, way, seed, folder):
    """Seconds to the end of an experiment, and its verdict."""
    workload, connections = LOADS[load]
    file = folder / "decision.toml"
    file.write_text(definition("decision", "restart", workload, connections, None, options.budget))
    out = folder / f"{load.replace(' ', '-')}-{way}-{seed}"
    command = [options.mydyno, "prove", str(file), "--out", str(out), "--seed", str(seed), "--delta", options.delta]
    begin = time.monotonic()
    ended = subprocess.run(command + WAYS[way] + ["--quiet", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    took = time.monotonic() - begin
    if ended.returncode not in (0, 1):
        sys.exit(f"{load}, {way}: exit status {ended.returncode}: {ended.stderr.strip()}")
    return took, json.loads(ended.stdout)["verdict"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--budget", default="15m")
    parser.add_argument("--delta", default="5%")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=LOADS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    verdicts, wrong, all_slices = Verdicts(), 0, 0
    print("| load | slices, s | decided | rows, s | decided | ratio |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for load in [options.only] if options.only else LOADS:
            times, decided = {way: [] for way in WAYS}, {way: 0 for way in WAYS}
            for seed in range(1, options.repeats + 1):
                for way in WAYS:
                    took, verdict = decide(options, load, way, seed, folder)
                    times[way].append(took)
                    decided[way] += verdict != "undecided"
                    if way == "slices":
                        all_slices += 1
                        wrong += verdict == "supported"
            ratio = statistics.median(times["slices"]) / statistics.median(times["rows"])
            cells = [f"{spread(times[way], 0)} | {decided[way]} of {options.repeats}" for way in WAYS]
            print(f"| {load} | {cells[0]} | {cells[1]} | {ratio:.2f} |", flush=True)
            verdicts.judge(f"{load}: time by slices over time by rows", ratio, "<=", 0.4)
    verdicts.judge("differences claimed between equal arms by slices", wrong, "<=", max(1, all_slices // 10), "experiments")
    verdicts.end()


if __name__ == "__main__":
    main()
