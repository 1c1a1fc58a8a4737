#!/usr/bin/env python3
"""What an audit costs: its time, the server's CPU, and what a running load notices of it.

    bench/audit_cost.py [--only PART] [--folder /dev/shm] [--engine ENGINE] [--basedir DIR] [--audits N]

Parts: few (1,000 tables on an idle server), many (100,000 tables beside a running oltp_read_write, whose commits are
counted every 100 ms). Making 100,000 tables takes two minutes in memory and half an hour on a disk: --folder says where
the server lies. Exit status 1 when something that must hold does not.

The server's CPU is the kernel's clock of its process, in nanoseconds, less what it uses by itself in as long a time.
"""

import argparse
import bisect
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from verdicts import add_binary, of_parts, spread

WINDOW_S = 0.1
KEYLESS_EVERY = 10_000


def process_s(pid):
    """CPU seconds of a process and all threads that it had."""
    return time.clock_gettime(((~pid) << 3) | 2)


@contextlib.contextmanager
def private_server(options, name):
    """A server below the folder; it ends however the measurement does."""
    environment = dict(os.environ, MYDYNO_STATE=f"{options.state}")
    up = [options.mydyno, "server", "up", name, "--json", "--set", "innodb_page_size=4K"]
    up += [word for setting in options.set for word in ("--set", setting)]
    up += ["--engine", options.engine] if options.engine else []
    up += ["--basedir", options.basedir] if options.basedir else []
    up = subprocess.run(up, capture_output=True, text=True, env=environment)
    if up.returncode != 0:
        sys.exit(f"no server to measure on: {up.stderr}")
    try:
        yield json.loads(up.stdout)
    finally:
        subprocess.run([options.mydyno, "server", "down", name, "--quiet"], check=True, env=environment)


def client(server):
    """A client's command line; its password stands in a file of ours."""
    return ["mariadb", f"--defaults-file={server['client_file']}", "--batch", "--skip-column-names", "--unbuffered"]


@contextlib.contextmanager
def access(server):
    with tempfile.NamedTemporaryFile("w", prefix="audit-cost", suffix=".cnf") as file:
        password = Path(server["password_file"]).read_text().strip()
        file.write(f"[client]\nsocket={server['socket']}\nuser={server['user']}\npassword={password}\n")
        file.flush()
        server["client_file"] = file.name
        yield server


def fill(server, tables):
    before = time.monotonic()
    sql = ["SET GLOBAL innodb_flush_log_at_trx_commit = 0; CREATE DATABASE filled;"]
    key = ["PRIMARY KEY" if n % KEYLESS_EVERY else "" for n in range(tables)]
    sql += [f"CREATE TABLE filled.t{n:06} (id INT {key[n]}, a INT, KEY a (a));" for n in range(tables)]
    sql += ["SET GLOBAL innodb_flush_log_at_trx_commit = 1;"]
    subprocess.run(client(server), input="\n".join(sql), text=True, check=True)
    print(f"{tables:,} tables made in {time.monotonic() - before:.0f} s", flush=True)


def audit(options, server):
    """One audit: seconds, its peak memory in MB, the server's CPU seconds, and its facts."""
    with tempfile.TemporaryDirectory() as folder:
        bundle = f"{folder}/facts.json"
        command = [options.mydyno, "audit", "--dsn", server["dsn"], "--quiet", "--json", "--save", bundle]
        server_s, start = process_s(server["pid"]), time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        end = time.monotonic()
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"the audit ended with {child.returncode}")
        facts = json.loads(Path(bundle).read_text())["facts"]
    return {"from": start, "to": end, "s": end - start, "mb": usage.ru_maxrss * 1024 / 1e6,
            "own_ms": (usage.ru_utime + usage.ru_stime) * 1e3,
            "server_ms": (process_s(server["pid"]) - server_s) * 1e3, "facts": facts}


def few(options, verdicts):
    with private_server(options, f"few-{os.getpid()}") as server, access(server):
        fill(server, 1000)
        # Until the server has nothing left of its own to do.
        wait_until_idle(server)
        runs = []
        for _ in range(options.audits or 7):
            before, start = process_s(server["pid"]), time.monotonic()
            time.sleep(1)
            idle = (process_s(server["pid"]) - before) / (time.monotonic() - start) * 1e3
            run = audit(options, server)
            run["server_ms"] -= idle * run["s"]
            runs.append(run)
    tables = {run["facts"]["schema.tables"]["value"] for run in runs}
    assert tables == {1000}, tables
    print(f"\n1,000 tables, idle server, {len(runs)} audits with a window of 1 s, median (range)")
    print(f"  wall, s: {spread([r['s'] for r in runs])}")
    print(f"  server CPU, ms: {spread([r['server_ms'] for r in runs], 0)}; audit's own CPU, ms: {spread([r['own_ms'] for r in runs], 0)}")
    verdicts.judge("1,000 tables, wall of the slowest", max(r["s"] for r in runs), "<=", 3, "s")
    verdicts.judge("1,000 tables, server CPU of the dearest", max(r["server_ms"] for r in runs), "<=", 150, "ms")


def wait_until_idle(server):
    calm = 0
    deadline = time.monotonic() + 120
    while calm < 3 and time.monotonic() < deadline:
        before = process_s(server["pid"])
        time.sleep(0.5)
        calm = calm + 1 if process_s(server["pid"]) - before < 0.01 else 0


class Commits(threading.Thread):
    """Commits of the server, counted every 100 ms over one connection."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.client = subprocess.Popen(client(server), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.at, self.count, self.wanted = [], [], True

    def run(self):
        due = time.monotonic()
        while self.wanted:
            self.client.stdin.write("SHOW GLOBAL STATUS LIKE 'Com_commit';\n")
            line = self.client.stdout.readline()
            self.at.append(time.monotonic())
            self.count.append(int(line.split()[1]))
            due = max(due + WINDOW_S, time.monotonic())
            time.sleep(due - time.monotonic() if due > time.monotonic() else 0)
        self.client.stdin.close()
        self.client.wait()

    def rates(self, start, end):
        """Commits a second in each window that touches the stretch."""
        first, last = bisect.bisect_left(self.at, start), bisect.bisect_right(self.at, end)
        pairs = range(max(first, 1), min(last + 1, len(self.at)))
        return [(self.count[n] - self.count[n - 1]) / (self.at[n] - self.at[n - 1]) for n in pairs]


def many(options, verdicts):
    audits = options.audits or 20
    with contextlib.ExitStack() as stack:
        if options.server:
            server = json.loads(Path(options.server).read_text())
            stack.enter_context(access(server))
        else:
            server = stack.enter_context(private_server(options, f"many-{os.getpid()}"))
            stack.enter_context(access(server))
            fill(server, 100_000)
        load = [options.mydyno, "bench", "oltp_read_write", "--socket", server["socket"], "--user", server["user"],
                "--password-file", server["password_file"], "--schema", "loaded", "--table-size", "100000",
                "--allow-load", "--quiet", "--no-observe"]
        subprocess.run([*load[:3], "prepare", *load[3:-1]], check=True, stdout=subprocess.DEVNULL)
        with tempfile.TemporaryDirectory() as folder:
            # The audits, as long without one beside each, and some seconds to begin with.
            longest = 15 * audits * 2 + 60
            bench = subprocess.Popen([*load[:3], "run", *load[3:], "--connections", str(options.connections),
                                      "--time", f"{longest}s", "--warmup", "0s", "--out", f"{folder}/run"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                commits = Commits(server)
                commits.start()
                time.sleep(5)
                start, runs = time.monotonic(), []
                for _ in range(audits):
                    run = audit(options, server)
                    # As long a stretch without an audit, to compare with.
                    time.sleep(run["s"] + 2 * WINDOW_S)
                    runs.append(run)
                end = time.monotonic()
                commits.wanted = False
                commits.join()
            finally:
                bench.terminate()
                bench.wait()
        subprocess.run([*load[:3], "cleanup", *load[3:-1]], check=True, stdout=subprocess.DEVNULL)
    median = statistics.median(commits.rates(start, end))
    for run in runs:
        run["lowest"] = min(commits.rates(run["from"], run["to"])) / median
        alone = run["to"] + WINDOW_S
        run["without"] = min(commits.rates(alone, alone + run["s"])) / median
    fell = [r for r in runs if r["lowest"] < 0.5]
    print(f"\n100,000 tables, {options.connections} connections at {median:.0f} transactions/s, {audits} audits, median (range)")
    print(f"  wall, s: {spread([r['s'] for r in runs])}; resident, MB: {spread([r['mb'] for r in runs], 0)}")
    print(f"  lowest 100 ms as a share of the run's median: during audits {spread([r['lowest'] for r in runs])},"
          f" without {spread([r['without'] for r in runs])}")
    print(f"  audits with a window below half: {len(fell)}; stretches without an audit: {sum(r['without'] < 0.5 for r in runs)}")
    facts = runs[0]["facts"]
    keyless = {run["facts"]["schema.without_primary_key"]["value"] for run in runs}
    assert keyless == {100_000 // KEYLESS_EVERY}, keyless
    print(f"  tables {facts['schema.tables']['value']}, read {facts['schema.tables_read']['value']},"
          f" sampled {facts['schema.sampled']['value']}")
    verdicts.judge("100,000 tables, wall of the slowest", max(r["s"] for r in runs), "<=", 15, "s")
    verdicts.judge("100,000 tables, resident", max(r["mb"] for r in runs), "<=", 100, "MB")
    verdicts.judge("audits without a window below half the median", (len(runs) - len(fell)) / len(runs), ">=", 0.95, "of them")


PARTS = {"few": few, "many": many}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--folder", default="/dev/shm", help="where the servers lie")
    parser.add_argument("--engine", help="as in mysql-8.0")
    parser.add_argument("--basedir", help="where that is unpacked")
    parser.add_argument("--set", action="append", default=[], metavar="VAR=VALUE", help="more settings of the server")
    parser.add_argument("--audits", type=int, help="how many")
    parser.add_argument("--connections", type=int, default=8, help="of the load")
    parser.add_argument("--server", metavar="FILE", help="a running private server with 100,000 tables: what `server up --json` said")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="audit-cost-", dir=options.folder) as state:
        os.chmod(state, 0o700)
        options.state = state
        of_parts(PARTS, options)


if __name__ == "__main__":
    main()
