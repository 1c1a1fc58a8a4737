#!/usr/bin/env python3
"""mydyno beside sysbench: the same server, tables, statements and connections, interleaved.

Client CPU is the operating system's account of each client process (wait4), from its start to its end: whatever the
client does besides asking counts too. Pairs are run in turn, so that what the machine does to one it does to the other;
ratios are made within a pair, and their median and range are printed. CPU that neither the clients nor the server used
is printed beside, because above ten per cent the machine is unfit for figures.

    bench/beside_sysbench.py [--workload oltp_point_select] [--connections 64] [--pairs 7] [--time 6]
    bench/beside_sysbench.py --against EARLIER     an earlier build of mydyno in sysbench's place

bench/speed_table.py measures all that docs/journal/load-engine.md promises.
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from verdicts import add_binary, spread

DATABASE = "mydyno"
DATABASE_OF_EARLIER = "mydyno_earlier"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--workload", default="oltp_point_select")
    parser.add_argument("--connections", default="64", help="list, as in 1,64,256")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--time", type=int, default=6, help="seconds of each run")
    parser.add_argument("--table-size", type=int, default=100_000)
    parser.add_argument("--must", type=float, help="exit 1 when the median ratio of client CPU is above this")
    parser.add_argument("--against", metavar="BINARY", help="an earlier build of mydyno in sysbench's place")
    parser.add_argument("--mydyno-options", default="", help="more options for mydyno, as in '--workers 1'")
    return parser.parse_args()


def cpu_seconds():
    """Busy CPU seconds of the host, without idle, waiting for disks and stolen time."""
    fields = [int(n) for n in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, _steal = fields
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def process_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(command, server_pid):
    """Runs a client; its output and who used the CPUs meanwhile."""
    host, server = cpu_seconds(), process_seconds(server_pid)
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode(errors="replace")
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {child.returncode}:\n{text}")
    client = usage.ru_utime + usage.ru_stime
    server = process_seconds(server_pid) - server
    foreign = cpu_seconds() - host - client - server
    return text, {"user": usage.ru_utime, "client": client, "server": server, "foreign": foreign,
                  "resident": usage.ru_maxrss * 1024}


def mydyno(options, server, connections):
    return measure(options.mydyno, DATABASE, options.mydyno_options, options, server, connections)


def earlier(options, server, connections):
    """The earlier build on tables of its own: what marks say of data differs between versions."""
    return measure(options.against, DATABASE_OF_EARLIER, "", options, server, connections)


def measure(binary, database, more, options, server, connections):
    with tempfile.TemporaryDirectory() as folder:
        record = f"{folder}/run"
        command = [binary, "bench", options.workload, "run", "--socket", server["socket"],
                   "--user", server["user"], "--password-file", server["password_file"], "--schema", database,
                   "--table-size", str(options.table_size), "--connections", str(connections),
                   "--time", f"{options.time}s", "--warmup", "0s", "--no-observe", "--allow-load", "--quiet",
                   "--out", record, *more.split()]
        _, cost = run(command, server["pid"])
        step = json.loads(Path(record, "summary.json").read_text())["steps"][0]
    cost["queries"], cost["transactions"] = step["queries"], step["transactions"]
    cost["queries_per_s"] = step["queries"] / step["window_s"]
    cost["transactions_per_s"] = step["transactions"] / step["window_s"]
    cost["queries_per_wait"] = step["client"]["queries_per_wait"]
    return cost


def sysbench(options, server, connections):
    password = Path(server["password_file"]).read_text().strip()
    with tempfile.NamedTemporaryFile("w", prefix="sysbench", suffix=".cfg") as config:
        # In a file of ours (mode 0600), not among the arguments, which everybody on the host can read.
        config.write(f"mysql-password={password}\n")
        config.flush()
        command = ["sysbench", f"--config-file={config.name}", options.workload, "run",
                   f"--mysql-socket={server['socket']}", f"--mysql-user={server['user']}", f"--mysql-db={DATABASE}",
                   f"--table-size={options.table_size}", f"--threads={connections}", f"--time={options.time}",
                   "--rand-type=uniform", "--rand-seed=1"]
        text, cost = run(command, server["pid"])
    found = lambda pattern: re.search(pattern, text)
    cost["queries"] = int(found(r"total: +(\d+)").group(1))
    cost["transactions"] = int(found(r"transactions: +(\d+)").group(1))
    elapsed = float(found(r"total time: +([\d.]+)s").group(1))
    cost["queries_per_s"] = cost["queries"] / elapsed
    cost["transactions_per_s"] = cost["transactions"] / elapsed
    return cost


def us(cost, what):
    return cost[what] / cost["queries"] * 1e6


ROWS = [
    ("client CPU per query, µs", lambda c: us(c, "client"), 2),
    ("of it user, µs", lambda c: us(c, "user"), 2),
    ("server CPU per query, µs", lambda c: us(c, "server"), 2),
    ("queries/s", lambda c: c["queries_per_s"], 0),
    ("transactions/s", lambda c: c["transactions_per_s"], 0),
    ("resident, MB", lambda c: c["resident"] / 1e6, 1),
]


def compare(options, server, connections):
    """Runs pairs and prints them; medians of mydyno's figures and of the ratios, by row."""
    peer = earlier if options.against else sysbench
    pairs = []
    for number in range(options.pairs):
        order = [mydyno, peer] if number % 2 == 0 else [peer, mydyno]
        result = {client.__name__: client(options, server, connections) for client in order}
        pairs.append(result)
    medians = {}
    print(f"\n{options.workload}, {connections} connections, {options.pairs} pairs of {options.time} s, median (range)")
    print(f"{'':28}{'mydyno':>26}{peer.__name__:>26}{f'mydyno ÷ {peer.__name__}':>24}")
    for name, of, digits in ROWS:
        cells = [spread([of(p[c]) for p in pairs], digits) for c in ("mydyno", peer.__name__)]
        ratios = [of(p["mydyno"]) / of(p[peer.__name__]) for p in pairs]
        medians[name] = {"own": statistics.median(of(p["mydyno"]) for p in pairs), "ratio": statistics.median(ratios)}
        print(f"{name:28}{cells[0]:>26}{cells[1]:>26}{spread(ratios):>24}")
    waits = spread([p["mydyno"]["queries_per_wait"] for p in pairs], 1)
    cpus = os.cpu_count()
    foreign = [p[c]["foreign"] / (cpus * options.time) for p in pairs for c in p]
    print(f"answers per wait (mydyno): {waits}; foreign CPU: {statistics.median(foreign):.0%} of the host"
          f" (worst {max(foreign):.0%}){' — UNFIT for figures' if statistics.median(foreign) > 0.10 else ''}", flush=True)
    return medians


@contextlib.contextmanager
def private_server(options):
    """A server for the peers, with tables; it ends however the measurement does."""
    name = f"peers-{os.getpid()}"
    # sysbench opens its connections without a second try: a short backlog refuses some of 4,000.
    up = subprocess.run([options.mydyno, "server", "up", name, "--set", "max_connections=12000", "--set", "back_log=12000",
                         "--set", "max_prepared_stmt_count=1000000", "--json"], capture_output=True, text=True)
    if up.returncode != 0:
        sys.exit(f"no server to measure on: {up.stderr}")
    try:
        server = json.loads(up.stdout)
        binaries = [(options.mydyno, DATABASE)] + ([(options.against, DATABASE_OF_EARLIER)] if options.against else [])
        for binary, database in binaries:
            subprocess.run([binary, "bench", options.workload, "prepare", "--socket", server["socket"],
                            "--user", server["user"], "--password-file", server["password_file"], "--schema", database,
                            "--table-size", str(options.table_size), "--allow-load", "--quiet"], check=True)
        yield server
    finally:
        subprocess.run([options.mydyno, "server", "down", name, "--quiet"], check=True)


def main():
    options = arguments()
    with private_server(options) as server:
        all_medians = [compare(options, server, int(n)) for n in options.connections.split(",")]
    worst = max(medians["client CPU per query, µs"]["ratio"] for medians in all_medians)
    if options.must is not None:
        print(f"client CPU: {worst:.2f} × at most, must be ≤ {options.must}: {'holds' if worst <= options.must else 'MISSED'}")
        sys.exit(0 if worst <= options.must else 1)


if __name__ == "__main__":
    main()
