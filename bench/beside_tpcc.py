#!/usr/bin/env python3
"""`mydyno bench tpcc --as sysbench-tpcc --text` beside stock sysbench with bench/tpcc.lua: the same server, tables, statements and isolation.

New orders are counted by the server for both: how far d_next_o_id has come, which rolled back orders do not change. Client CPU is
the operating system's account of each client process. Pairs run in turn; ratios are made within a pair.

    bench/beside_tpcc.py [--connections 1,16,64] [--pairs 5] [--time 12] [--must]
    bench/beside_tpcc.py --batched      the specification's work, batched beside single statements
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from beside_sysbench import run
from verdicts import add_binary, spread

DATABASE = "mydyno"
LEAST_NOTPM, MOST_CPU, MOST_LOAD_S = 1.15, 0.35, 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--connections", default="1,16,64")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--time", type=int, default=12, help="seconds of each run")
    parser.add_argument("--warehouses", type=int, default=4)
    parser.add_argument("--load-connections", type=int, default=4)
    parser.add_argument("--batched", action="store_true", help="batched beside single statements in sysbench's place")
    parser.add_argument("--must", action="store_true", help="exit 1 when a figure that must hold is missed")
    parser.add_argument("--set", action="append", default=[], help="a variable of the server, as in sync_binlog=0")
    parser.add_argument("--mydyno-options", default="--text", help="more options for mydyno")
    return parser.parse_args()


class Server:
    """A private server with the tables of TPC-C."""

    def __init__(self, options):
        self.options, self.name = options, f"tpcc-{os.getpid()}"
        sets = ["innodb_buffer_pool_size=1G", "innodb_log_file_size=512M", *options.set]
        up = [options.mydyno, "server", "up", self.name, "--json", *[word for each in sets for word in ("--set", each)]]
        done = subprocess.run(up, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"no server to measure on: {done.stderr}")
        self.at = json.loads(done.stdout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([self.options.mydyno, "server", "down", self.name, "--quiet"], check=True)

    def bench(self, step, *rest):
        return [self.options.mydyno, "bench", "tpcc", step, "--socket", self.at["socket"], "--user", self.at["user"],
                "--password-file", self.at["password_file"], "--schema", DATABASE, "--warehouses",
                str(self.options.warehouses), "--allow-load", "--quiet", *rest]

    def load(self):
        """Seconds of a prepare."""
        began = time.monotonic()
        subprocess.run(self.bench("prepare", "--prepare-threads", str(self.options.load_connections)), check=True)
        return time.monotonic() - began

    def orders(self):
        sql = f"SELECT SUM(d_next_o_id) FROM {DATABASE}.district"
        done = subprocess.run([self.options.mydyno, "server", "cli", self.name, "-e", sql], capture_output=True, text=True,
                              check=True)
        return int(re.findall(r"\d+", done.stdout)[-1])


def measured(server, command, seconds_of):
    before = server.orders()
    text, cost = run(command, server.at["pid"])
    cost["orders"] = server.orders() - before
    cost["notpm"] = cost["orders"] / seconds_of(text) * 60
    cost["client_ms"] = cost["client"] / cost["orders"] * 1e3
    cost["server_ms"] = cost["server"] / cost["orders"] * 1e3
    return cost


def mydyno(server, connections, rest):
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "run")
        command = server.bench("run", "--connections", str(connections), "--time", f"{server.options.time}s", "--warmup", "0s",
                               "--no-observe", "--out", str(record), *rest)
        window = lambda _text: json.loads(Path(record, "summary.json").read_text())["steps"][0]["window_s"]
        return measured(server, command, window)


def sysbench(server, connections):
    password = Path(server.at["password_file"]).read_text().strip()
    with tempfile.NamedTemporaryFile("w", prefix="sysbench", suffix=".cfg") as config:
        config.write(f"mysql-password={password}\n")
        config.flush()
        script = Path(__file__).with_name("tpcc.lua")
        command = ["sysbench", f"--config-file={config.name}", str(script), "run", f"--mysql-socket={server.at['socket']}",
                   f"--mysql-user={server.at['user']}", f"--mysql-db={DATABASE}", f"--threads={connections}",
                   f"--time={server.options.time}", f"--warehouses={server.options.warehouses}", "--rand-seed=0"]
        elapsed = lambda text: float(re.search(r"total time: +([\d.]+)s", text).group(1))
        return measured(server, command, elapsed)


def sides(options):
    """Both clients by name: (name, function of server and connections)."""
    if options.batched:
        form = lambda statements: lambda server, n: mydyno(server, n, ["--statements", statements])
        return ("batched", form("batched")), ("single", form("single"))
    rest = ["--as", "sysbench-tpcc", *options.mydyno_options.split()]
    return ("mydyno", lambda server, n: mydyno(server, n, rest)), ("sysbench", sysbench)


ROWS = [("NOTPM", "notpm", 0), ("client CPU per new order, ms", "client_ms", 3), ("server CPU per new order, ms", "server_ms", 3)]


def compare(options, server, connections):
    """Runs pairs and prints them; the median ratios by figure."""
    (one, run_one), (other, run_other) = sides(options)
    pairs = []
    for number in range(options.pairs):
        order = [(one, run_one), (other, run_other)]
        pairs.append({name: client(server, connections) for name, client in (order if number % 2 == 0 else order[::-1])})
    print(f"\n{connections} connections, {options.pairs} pairs of {options.time} s, median (range)")
    print(f"{'':30}{one:>28}{other:>28}{f'{one} ÷ {other}':>24}")
    medians = {}
    for title, figure, digits in ROWS:
        cells = [spread([pair[name][figure] for pair in pairs], digits) for name in (one, other)]
        ratios = [pair[one][figure] / pair[other][figure] for pair in pairs]
        medians[figure] = statistics.median(ratios)
        print(f"{title:30}{cells[0]:>28}{cells[1]:>28}{spread(ratios):>24}")
    foreign = [side["foreign"] / (os.cpu_count() * options.time) for pair in pairs for side in pair.values()]
    print(f"foreign CPU: {statistics.median(foreign):.0%} of the host (worst {max(foreign):.0%})"
          f"{' — UNFIT for figures' if statistics.median(foreign) > 0.10 else ''}", flush=True)
    return medians


def main():
    options = arguments()
    missed = []
    with Server(options) as server:
        load_s = server.load()
        print(f"load of {options.warehouses} warehouses, {options.load_connections} connections: {load_s:.1f} s", flush=True)
        if load_s > MOST_LOAD_S:
            missed.append(f"load ≤ {MOST_LOAD_S} s")
        for connections in map(int, options.connections.split(",")):
            medians = compare(options, server, connections)
            if not options.batched and medians["notpm"] < LEAST_NOTPM:
                missed.append(f"NOTPM ≥ {LEAST_NOTPM} × at {connections} connections")
            if not options.batched and medians["client_ms"] > MOST_CPU:
                missed.append(f"client CPU ≤ {MOST_CPU} × at {connections} connections")
    print("\nmissed: " + "; ".join(missed) if missed else "\nall that must hold holds")
    sys.exit(1 if missed and options.must else 0)


if __name__ == "__main__":
    main()
