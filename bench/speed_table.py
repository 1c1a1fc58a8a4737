#!/usr/bin/env python3
"""The load engine's speed beside sysbench's, with what must hold: about six minutes on a quiet host.

    bench/speed_table.py [--pairs 5] [--time 3] [--only PART]
    bench/speed_table.py --against EARLIER         the loads beside an earlier build of mydyno instead

Parts: loads (pairs on one server), many (10,000 connections), prepare (one table of a million rows), null (what the load
generator itself costs). Exit status 1 when something that must hold does not.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import beside_sysbench as peers
from verdicts import ROOT, add_binary, of_parts, spread

CPU, USER, QUERIES, TRANSACTIONS, RESIDENT = (
    "client CPU per query, µs", "of it user, µs", "queries/s", "transactions/s", "resident, MB")

# Workload, connections, and per row of the table: which figure, which way, how much.
LOADS = [
    ("oltp_point_select", 1, [(QUERIES, "ratio", ">=", 0.97)]),
    ("oltp_point_select", 64, [(CPU, "ratio", "<=", 0.50), (USER, "ratio", "<=", 0.20), (QUERIES, "ratio", ">=", 1.10)]),
    ("oltp_point_select", 256, [(CPU, "ratio", "<=", 0.40), (QUERIES, "ratio", ">=", 1.15)]),
    ("oltp_point_select", 4000, [(CPU, "ratio", "<=", 0.25), (RESIDENT, "own", "<=", 60)]),
    ("oltp_read_write", 16, [(CPU, "ratio", "<=", 0.5), (TRANSACTIONS, "ratio", ">=", 1.05)]),
    ("oltp_read_write", 64, [(CPU, "ratio", "<=", 0.5), (TRANSACTIONS, "ratio", ">=", 1.05)]),
]
# Beside an earlier build, at every load.
AGAINST = [(QUERIES, "ratio", ">=", 0.97), (CPU, "ratio", "<=", 1.03)]
PREPARE_PAIRS = 3
MILLION = 1_000_000


def loads(options, verdicts):
    with peers.private_server(options) as server:
        for workload, connections, musts in LOADS:
            options.workload = workload
            options.pairs = options.all_pairs if connections < 4000 or options.against else 2
            medians = peers.compare(options, server, connections)
            for row, kind, way, bound in AGAINST if options.against else musts:
                unit = "×" if kind == "ratio" else "MB"
                verdicts.judge(f"{workload}, {connections} connections, {row.split(',')[0]}", medians[row][kind], way,
                               bound, unit)


def many(options, verdicts):
    options.workload = "oltp_point_select"
    with peers.private_server(options) as server:
        cost = peers.mydyno(options, server, 10_000)
    print(f"\n10,000 connections: {cost['resident'] / 1e6:.1f} MB resident, {cost['queries_per_s']:.0f} queries/s")
    verdicts.judge("10,000 connections, resident", cost["resident"] / 1e6, "<=", 150, "MB")


def prepare(options, verdicts):
    """One table of a million rows, with its secondary index, on a server that is empty each time."""
    taken = {"mydyno": [], "sysbench": []}
    options.workload = "oltp_point_select"
    small, options.table_size = options.table_size, 10
    with peers.private_server(options) as server:
        password = Path(server["password_file"]).read_text().strip()
        for number in range(PREPARE_PAIRS):
            order = ["mydyno", "sysbench"] if number % 2 == 0 else ["sysbench", "mydyno"]
            for client in order:
                taken[client].append(filled(options, server, password, client))
    options.table_size = small
    ratios = [mine / theirs for mine, theirs in zip(taken["mydyno"], taken["sysbench"])]
    print(f"\n1,000,000 rows prepared: mydyno {spread(taken['mydyno'], 1)} s, sysbench"
          f" {spread(taken['sysbench'], 1)} s, ratio {spread(ratios)}")
    verdicts.judge("1,000,000 rows prepared", statistics.median(ratios), "<=", 0.6)


def filled(options, server, password, client):
    """Seconds to fill a table of a million rows."""
    access = ["--socket", server["socket"], "--user", server["user"], "--password-file", server["password_file"]]
    if client == "mydyno":
        fill = [options.mydyno, "bench", "oltp_point_select", "prepare", *access, "--schema", "filled",
                "--table-size", str(MILLION), "--allow-load", "--quiet"]
        drop = [options.mydyno, "bench", "oltp_point_select", "cleanup", *access, "--schema", "filled",
                "--table-size", str(MILLION), "--allow-load", "--quiet"]
        return timed(fill, drop)
    with tempfile.NamedTemporaryFile("w", prefix="sysbench", suffix=".cfg") as config:
        config.write(f"mysql-password={password}\n")
        config.flush()
        base = ["sysbench", f"--config-file={config.name}", "oltp_point_select",
                f"--mysql-socket={server['socket']}", f"--mysql-user={server['user']}", "--mysql-db=test",
                f"--table-size={MILLION}"]
        environment = dict(os.environ, MYSQL_PWD=password)
        subprocess.run(["mariadb", "--no-defaults", "-S", server["socket"], "-u", server["user"], "-e",
                        "CREATE DATABASE IF NOT EXISTS test"], check=True, env=environment)
        return timed([*base, "prepare"], [*base, "cleanup"])


def timed(fill, drop):
    start = time.monotonic()
    subprocess.run(fill, check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - start
    subprocess.run(drop, check=True, stdout=subprocess.DEVNULL)
    return seconds


def null(_options, verdicts):
    runs = []
    for _ in range(3):
        out = subprocess.run(["cargo", "run", "-q", "--release", "--locked", "-p", "mydyno-load", "--example",
                              "null_driver"], check=True, capture_output=True, text=True, cwd=ROOT).stdout
        runs.append(float(re.search(r"([\d.]+) M statements/s", out).group(1)))
    print(f"\nnull driver, one thread: {spread(runs, 1)} M statements/s")
    verdicts.judge("null driver, one thread", statistics.median(runs), ">=", 6, "M/s")


PARTS = {"loads": loads, "many": many, "prepare": prepare, "null": null}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--time", type=int, default=3, help="seconds of each run")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--against", metavar="BINARY", help="an earlier build of mydyno in sysbench's place; loads only")
    parser.add_argument("--mydyno-options", default="", help="more options for mydyno, as in '--workers 2'")
    options = parser.parse_args()
    if options.against:
        options.only = "loads"
    options.all_pairs = options.pairs
    options.workload, options.table_size = "oltp_point_select", 100_000
    of_parts(PARTS, options)


if __name__ == "__main__":
    main()
