#!/usr/bin/env python3
"""`mydyno sysbench` beside sysbench: the same words to both, on one server by its unix socket, in turn.

    bench/beside_sysbench_compat.py [--pairs 5] [--time 3] [--threads 1,16,64,256] [--scripts oltp_point_select,…]

Client CPU is the system's account of each whole process with its children (wait4), from start to end. Ratios are made
within a pair; medians and ranges are printed. Exit status 1 when something that must hold does not.
"""

import argparse
import os
import re
import statistics
import tempfile
from pathlib import Path

import beside_sysbench as peers
from verdicts import Verdicts, add_binary, spread

SCRIPTS = "oltp_point_select,oltp_read_only,oltp_read_write"
# By threads: transactions at least, client CPU per query at most, each as a multiple of sysbench's.
MUST = {1: (1.00, 1.0), 16: (1.05, 0.65), 64: (1.10, 0.6), 256: (1.15, 0.5)}


def client(program, options, server, script, threads):
    """Runs one client; its cost with what its report counts."""
    password = Path(server["password_file"]).read_text().strip()
    with tempfile.NamedTemporaryFile("w", prefix="sysbench", suffix=".cfg") as config:
        # In a file of ours (mode 0600), not among the arguments, which everybody on the host can read.
        config.write(f"mysql-password={password}\n")
        config.flush()
        text, cost = peers.run([*program, f"--config-file={config.name}", script, f"--mysql-socket={server['socket']}",
                                f"--mysql-user={server['user']}", f"--mysql-db={peers.DATABASE}",
                                f"--table-size={options.table_size}", f"--threads={threads}", f"--time={options.time}",
                                *options.options.split(), "run"], server["pid"])
    number = lambda pattern: float(re.search(pattern, text).group(1))
    cost["queries"], seconds = number(r"total: +(\d+)"), number(r"total time: +([\d.]+)s")
    cost["transactions_per_s"] = number(r"transactions: +(\d+)") / seconds
    cost["us"] = cost["client"] / cost["queries"] * 1e6
    return cost


def row(options, server, script, threads, verdicts):
    programs = {"mydyno": [options.mydyno, "sysbench", *options.mydyno_options.split()], "sysbench": ["sysbench"]}
    pairs = []
    for number in range(options.pairs):
        order = ["mydyno", "sysbench"] if number % 2 == 0 else ["sysbench", "mydyno"]
        pairs.append({name: client(programs[name], options, server, script, threads) for name in order})
    ratios = {what: [p["mydyno"][what] / p["sysbench"][what] for p in pairs] for what in ("transactions_per_s", "us")}
    cells = [spread([p[name]["us"] for p in pairs]) for name in programs]
    foreign = [p[name]["foreign"] / (os.cpu_count() * options.time) for p in pairs for name in p]
    print(f"| {script} | {threads} | {spread(ratios['transactions_per_s'])} | {spread(ratios['us'])} | {cells[0]} |"
          f" {cells[1]} | {statistics.median(foreign):.0%} |", flush=True)
    transactions, cpu = MUST.get(threads, (1.0, 1.0))
    verdicts.judge(f"{script}, {threads} threads, transactions", statistics.median(ratios["transactions_per_s"]), ">=",
                   transactions)
    verdicts.judge(f"{script}, {threads} threads, client CPU per query", statistics.median(ratios["us"]), "<=", cpu)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--time", type=int, default=3, help="seconds of each run")
    parser.add_argument("--threads", default=",".join(map(str, MUST)))
    parser.add_argument("--scripts", default=SCRIPTS)
    parser.add_argument("--table-size", type=int, default=100_000)
    parser.add_argument("--options", default="", help="more options for both")
    parser.add_argument("--mydyno-options", default="", help="more options for mydyno, as in --mydyno-engine=lua")
    options = parser.parse_args()
    options.against, options.workload = None, "oltp_point_select"
    verdicts = Verdicts()
    autogroup = Path("/proc/sys/kernel/sched_autogroup_enabled")
    print(f"kernel.sched_autogroup_enabled={autogroup.read_text().strip() if autogroup.exists() else 'absent'},"
          f" {options.pairs} pairs of {options.time} s, median (range)\n")
    print("| script | threads | transactions ÷ sysbench | client CPU per query ÷ sysbench | mydyno, µs | sysbench, µs |"
          " foreign CPU |\n|---|---|---|---|---|---|---|")
    with peers.private_server(options) as server:
        for script in options.scripts.split(","):
            for threads in map(int, options.threads.split(",")):
                row(options, server, script, threads, verdicts)
    verdicts.end()


if __name__ == "__main__":
    main()
