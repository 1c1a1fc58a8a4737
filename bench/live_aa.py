#!/usr/bin/env python3
"""Twenty experiments on this machine whose arms do not differ: how often a difference is claimed, and how small a bound they end with.

    bench/live_aa.py --out DIR [--budget 5m] [--only NUMBER] [--count N]

The arms are equal servers (started once, in turns or for each row; or loaded at the same time), or differ in a setting that the load
cannot notice (in place, and of the whole host: vm.vfs_cache_pressure 100 against 101, which needs root). Closed and open loads.
A second call with the same folder goes on: experiments with a verdict are not carried out again, an interrupted one is
resumed. DIR/table.md holds the table. Exit status 1 when something that must hold does not.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from verdicts import Verdicts, add_binary

POINT, WRITE, MIXED = "oltp_point_select", "oltp_update_non_index", "oltp_read_write"
IN_PLACE = ("variable.max_connect_errors=100", "variable.max_connect_errors=101")
OF_HOST = ("vm.vfs_cache_pressure=100", "vm.vfs_cache_pressure=101")
SHORT = {"slice": "1s", "settle": "250ms", "warmup": "3s"}
LONG = {"slice": "10s", "settle": "2s", "warmup": "3s"}

# Kind, mode of the file, option of the command, levers of both arms, lengths; then workload, connections, arrivals a second.
KINDS = {
    "restart": ("alternate", None, (None, None), SHORT),
    "duet": ("alternate", "--duet", (None, None), SHORT),
    "rows": ("rows", None, (None, None), LONG),
    "in place": ("in_place", None, IN_PLACE, SHORT),
    "host-wide": ("in_place", None, OF_HOST, SHORT),
    "host-wide rows": ("rows", None, OF_HOST, LONG),
}
EXPERIMENTS = [
    ("restart", POINT, 8, None), ("restart", MIXED, 8, None), ("restart", WRITE, 4, None),
    ("restart", POINT, 8, 1000), ("restart", MIXED, 8, 100),
    ("duet", POINT, 8, None), ("duet", MIXED, 8, None), ("duet", WRITE, 4, None), ("duet", POINT, 8, 1000),
    ("rows", POINT, 8, None), ("rows", POINT, 8, 1000),
    ("in place", POINT, 8, None), ("in place", MIXED, 8, None), ("in place", WRITE, 4, None),
    ("in place", POINT, 8, 1000), ("in place", WRITE, 4, 200),
    ("host-wide", POINT, 8, None), ("host-wide", MIXED, 8, None), ("host-wide", POINT, 8, 1000),
    ("host-wide rows", POINT, 8, None),
]


def definition(name, kind, workload, connections, rate, budget):
    """The experiment's file. An open load has a throughput that its rate sets, so its mean response decides."""
    mode, _, (baseline, treatment), lengths = KINDS[kind]
    levers = lambda lever: "[]" if lever is None else f'["{lever}"]'
    extent = "\n".join([f'budget = "{budget}"'] + [f'{key} = "{value}"' for key, value in lengths.items()])
    response = "response_mean" if rate else "transactions_per_s"
    return f"""name = "{name}"
question = "Do equal arms differ?"
why = "They do not: what differs is the noise of this host, or a value that the load cannot notice."
since = "0.1.0"
expects = "refuted"
[baseline]
levers = {levers(baseline)}
[treatment]
levers = {levers(treatment)}
[load]
workload = "{workload}"
connections = {connections}
{f"rate = {float(rate)}" if rate else ""}
[load.options]
tables = 1
table-size = 10000
[[response]]
name = "{response}"
direction = "differs"
delta = "3%"
[execution]
mode = "{mode}"
why = "An experiment of this kind whose arms do not differ."
[quick]
{extent}
[full]
{extent}
"""


def carry_out(options, number, folder):
    """The verdict of an experiment: of its folder, resumed, or carried out now."""
    kind, workload, connections, rate = EXPERIMENTS[number]
    results = folder / "results"
    verdict = results / "verdict.json"
    if not verdict.exists():
        name = f"aa-{number + 1:02d}"
        file = folder / f"{name}.toml"
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(definition(name, kind, workload, connections, rate, options.budget))
        if (results / "design.json").exists():
            command = [options.mydyno, "prove", "--resume", str(results)]
        else:
            command = [options.mydyno, "prove", str(file), "--out", str(results), "--seed", str(number + 1)]
            command += [KINDS[kind][1]] if KINDS[kind][1] else []
        command += ["--allow-host-change", "--quiet", "--json"]
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if not verdict.exists():
            print(f"{number + 1}: exit status {ended.returncode}: {ended.stderr.strip()}", file=sys.stderr)
            return None
    return json.loads(verdict.read_text())


def bound(estimate):
    """The largest effect that an interval holds, in percent, in either direction."""
    if estimate is None or estimate.get("low") is None:
        return float("inf")
    return 100 * max(estimate["high"] - 1, 1 / max(estimate["low"], 1e-9) - 1)


def interval(estimate):
    if estimate is None or estimate.get("low") is None:
        return "–"
    return f"{estimate['low']:.4f}–{estimate['high']:.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--only", type=int, help="number of the one experiment to carry out")
    parser.add_argument("--count", type=int, default=len(EXPERIMENTS), help="carry out the first N")
    options = parser.parse_args()
    numbers = range(len(EXPERIMENTS))[: options.count] if options.only is None else [options.only - 1]
    lines = ["| | kind | load | verdict | effect | baseline again | bound | blocks |", "|---|---|---|---|---|---|---|---|"]
    found = []
    for number in numbers:
        kind, workload, connections, rate = EXPERIMENTS[number]
        load = f"{workload}, {connections} connections, " + (f"{rate}/s" if rate else "closed")
        verdict = carry_out(options, number, options.out / f"{number + 1:02d}")
        if verdict is None:
            lines.append(f"| {number + 1} | {kind} | {load} | no verdict | | | | |")
            continue
        effect = verdict["responses"][0]["effect_ratio"] if verdict["responses"] else None
        found.append((verdict["verdict"], bound(effect), verdict.get("again")))
        lines.append(
            f"| {number + 1} | {kind} | {load} | {verdict['verdict']} | {interval(effect)} | "
            f"{interval(verdict.get('again'))} | {bound(effect):.1f} % | {verdict['blocks']} |"
        )
        (options.out / "table.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    if len(found) < len(EXPERIMENTS):
        print(f"\n{len(found)} of {len(EXPERIMENTS)} experiments have a verdict; what must hold is judged with all of them.")
        return
    verdicts = Verdicts()
    holds = lambda again: again is not None and again.get("low") is not None and again["low"] <= 1 <= again["high"]
    verdicts.judge("verdicts of a difference", sum(word == "supported" for word, _, _ in found), "<=", 3, "of 20")
    verdicts.judge("intervals of the baseline's copy that hold 1", sum(holds(again) for _, _, again in found), ">=", 17, "of 20")
    verdicts.judge("bounds below 3 %", sum(bound < 3 for _, bound, _ in found), ">=", 12, "of 20")
    verdicts.end()


if __name__ == "__main__":
    main()
