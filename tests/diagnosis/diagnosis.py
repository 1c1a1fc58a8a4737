#!/usr/bin/env python3
"""Faults that are brought about for real on a private server under load, and what `mydyno watch` names first.

diagnosis.py BINARY [NAME…]: all faults, or the named ones, and healthy runs; a table of what was named. The exit status is 1 where fewer
than 19 of 20 runs are named right. Run as root on a machine without other work.

REPEAT=N (1)       runs of each
SECONDS_EACH=N (60)     length of a run's watch
ENGINE=NAME        another server (as in mysql-8.0; a folder is a --basedir)
OUT=FILE           keeps the diagnoses, a JSON line each
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = "truth"
SETTLE_S = 3
CLIENT_BOUND = "client-idle.client-bound"
LONG_HISTORY = 150_000


class Run:
    """A private server with its load and whatever disturbs it; everything ends with it."""

    def __init__(self, binary, seconds):
        self.binary, self.seconds = binary, seconds
        self.state = tempfile.TemporaryDirectory(prefix="mydyno-truth-")
        self.environment = {**os.environ, "MYDYNO_STATE": self.state.name + "/s"}
        self.children, self.dsn, self.answer, self.pid = [], None, {}, None
        self.files = []

    def mydyno(self, *words, check=True):
        ended = subprocess.run([self.binary, *words], capture_output=True, text=True, env=self.environment)
        if check and ended.returncode != 0:
            raise RuntimeError(f"mydyno {' '.join(words)}: {ended.stderr.strip()[-600:]}")
        return ended.stdout

    def start(self, *words):
        with open(f"{self.state.name}/{len(self.children)}.err", "wb") as errors:
            # In a session of its own, as other programs of a host are: with kernel.sched_autogroup_enabled all of one session share what
            # one program gets. It is also the group that ends together: a shell leaves its copy running.
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=self.environment,
                                     start_new_session=True)
        self.children.append(child)

    def server(self, *levers, options=()):
        words = ["server", "up", SERVER, "--json"]
        engine = os.environ.get("ENGINE")
        if engine:
            words += ["--basedir", engine] if "/" in engine else ["--engine", engine]
        for lever in levers:
            words += ["--lever", lever]
        for option in (*options, "performance_schema=ON"):
            words += ["--set", option]
        if any(lever.split(".")[0] in ("swap", "vm") for lever in levers):
            words.append("--allow-host-change")
        self.answer = json.loads(self.mydyno(*words))
        self.dsn, self.pid = self.answer["dsn"], self.answer["pid"]
        return self

    def tables(self, workload, *options):
        self.mydyno("bench", workload, "prepare", "--dsn", self.dsn, "--allow-load", *options)
        return self

    def bench(self, workload, *options, seconds=None):
        """Words of a load that outlasts the watch."""
        time_s = seconds or self.seconds + 30
        return [self.binary, "bench", workload, "run", "--dsn", self.dsn, "--no-observe", "--quiet", "--warmup", "0s",
                "--time", f"{time_s}s", "--allow-load", *options]

    def load(self, workload, *options, **more):
        self.start(*self.bench(workload, *options, **more))
        return self

    def capacity(self, workload, *options):
        """Transactions a second of a short closed loop."""
        words = self.bench(workload, *options, seconds=6)
        ended = subprocess.run([*words, "--json"], capture_output=True, text=True, env=self.environment)
        return json.loads(ended.stdout)["steps"][0]["throughput"]["transactions_per_s"]["value"]

    def at_half_capacity(self, workload, *options):
        """An open loop at half of what a closed one reaches."""
        rate = self.capacity(workload, *options) / 2
        return self.load(workload, *options, "--rate", f"{rate:.1f}")

    def session(self, sql):
        """A session that sends statements and stays until the run ends."""
        self.start(self.binary, "server", "cli", SERVER, "-e", sql)

    def history(self):
        """Row versions that wait for purge."""
        words = ("watch", "--dsn", self.dsn, "--json", "--quiet", "--once")
        return json.loads(self.mydyno(*words))["figures"].get("innodb.history_length", 0)

    def watch(self):
        time.sleep(SETTLE_S)
        self.check()
        words = ["watch", "--dsn", self.dsn, "--json", "--quiet", "--budget", "--count", str(self.seconds)]
        found = json.loads(self.mydyno(*words).strip().splitlines()[-1])
        self.check()
        return found

    def check(self):
        """Whatever was started runs."""
        for child in self.children:
            if child.poll() is not None:
                raise RuntimeError(f"ended with status {child.returncode}: {' '.join(child.args)[:300]}: {self.said(child)}")

    def said(self, child):
        with open(f"{self.state.name}/{self.children.index(child)}.err", encoding="utf-8", errors="replace") as file:
            return file.read()[-300:]

    def end(self):
        for child in self.children:
            signal_group(child, signal.SIGTERM)
        for child in self.children:
            try:
                child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                pass
            signal_group(child, signal.SIGKILL)
            child.wait()
        for file in self.files:
            if os.path.exists(file):
                os.remove(file)
        self.mydyno("server", "down", SERVER, check=False)
        self.mydyno("host", "restore", check=False)
        self.state.cleanup()


def signal_group(child, number):
    """Sends a signal to all processes of a child's session; they may have ended."""
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        pass


def redo_log(size):
    """The option of the redo log's size, by its name in the engine: MySQL 9 has no innodb_log_file_size."""
    parts = os.environ.get("ENGINE", "").split("/")
    is_late = any(part.startswith(("mysql-8.4", "mysql-9")) for part in parts)
    name = "innodb_redo_log_capacity" if is_late else "innodb_log_file_size"
    # The smallest capacity is 8 MiB.
    return f"{name}={'8M' if size == '4M' and name == 'innodb_redo_log_capacity' else size}"


def data_folder(run):
    return os.path.dirname(run.answer["socket"])


SMALL = ("--tables", "1", "--table-size", "20000")


def healthy(run):
    run.server(options=("innodb_buffer_pool_size=64M",)).tables("oltp_read_write", *SMALL)
    run.at_half_capacity("oltp_read_write", *SMALL, "--connections", "16")


def hot_row(run):
    """One row that each transaction locks first and holds for three statements."""
    order = ("--insert-order", "--statements", "select-for-update")
    run.server(options=("max_connections=300", "innodb_flush_log_at_trx_commit=0")).tables("hot_row", *order)
    run.load("hot_row", *order, "--connections", "32")


def small_pool(run):
    """A pool of a tenth of the data, on a device that answers 400 reads a second."""
    size = ("--tables", "1", "--table-size", "250000", "--rand-type", "uniform")
    run.server("disk.file_system=ext4", "cgroup.io=read_iops=400", options=("innodb_buffer_pool_size=6M", "innodb_flush_method=O_DIRECT"))
    run.tables("oltp_point_select", *size).load("oltp_point_select", *size, "--connections", "8")


def slow_redo(run):
    run.server("server.sync_delay=8ms").tables("oltp_update_non_index", *SMALL)
    run.load("oltp_update_non_index", *SMALL, "--connections", "8")


def slow_binlog(run):
    options = ("log_bin=binlog", "server_id=1", "sync_binlog=1", "innodb_flush_log_at_trx_commit=0")
    run.server("server.sync_delay=8ms", options=options).tables("oltp_update_non_index", *SMALL)
    run.load("oltp_update_non_index", *SMALL, "--connections", "8")


def small_redo(run):
    size = ("--tables", "1", "--table-size", "300000", "--rand-type", "uniform")
    options = (redo_log("4M"), "innodb_buffer_pool_size=256M", "innodb_flush_log_at_trx_commit=0", "innodb_flush_method=O_DIRECT")
    run.server("disk.file_system=ext4", "cgroup.io=write_iops=300", options=options).tables("oltp_update_index", *size)
    run.load("oltp_update_index", *size, "--connections", "8")


def cpu_quota(run):
    run.server("cgroup.cpu=0.25").tables("oltp_read_only", *SMALL).load("oltp_read_only", *SMALL, "--connections", "8")


def pinned_hog(run):
    """One thread that computes, on the CPU to which the server is bound."""
    run.server("server.affinity=0").tables("oltp_read_only", *SMALL)
    run.start("taskset", "-c", "0", sys.executable, "-c", "while True: pass")
    run.load("oltp_read_only", *SMALL, "--connections", "8")


def busy_neighbours(run):
    run.server().tables("oltp_read_only", *SMALL)
    for _ in range(4):
        run.start(sys.executable, "-c", "while True: pass")
    run.load("oltp_read_only", *SMALL, "--connections", "4")


def cpu_bound(run):
    """Scans: much work of the server for little of the client."""
    run.server(options=("innodb_buffer_pool_size=64M",)).tables("oltp_read_only", *SMALL)
    sql = "SELECT SUM(CRC32(c)) FROM sbtest1 WHERE k > 10"
    run.load("sql", "--schema", "mydyno", "--sql", sql, "--connections", "8")


def swap(run):
    size = ("--tables", "1", "--table-size", "700000", "--rand-type", "uniform")
    run.server("swap.file=1G", "cgroup.memory=160M", "cgroup.swap=1G", options=("innodb_buffer_pool_size=400M",))
    run.tables("oltp_point_select", *size).load("oltp_point_select", *size, "--connections", "8")


def charset(run):
    """A latin1 column compared with a utf8mb4 one: each value is converted. At half the capacity, so that nothing else is short."""
    run.server(options=("character_set_server=latin1",)).tables("oltp_read_only", *SMALL)
    for sql in ("ALTER TABLE mydyno.sbtest1 CONVERT TO CHARACTER SET latin1",
                "CREATE TABLE mydyno.wide (id INT PRIMARY KEY, c VARCHAR(120)) CHARACTER SET utf8mb4 SELECT id, c FROM mydyno.sbtest1 WHERE id <= 2000"):
        run.mydyno("server", "cli", SERVER, "-e", sql)
    sql = "SELECT COUNT(*) FROM wide STRAIGHT_JOIN sbtest1 ON wide.id = sbtest1.id WHERE sbtest1.c = wide.c AND CONCAT(sbtest1.c, wide.c) > ''"
    run.at_half_capacity("sql", "--schema", "mydyno", "--sql", sql, "--connections", "4")


def metadata_locks(run):
    """DDL behind a transaction that is open, and everybody behind the DDL."""
    run.server().tables("oltp_read_only", *SMALL)
    run.load("oltp_read_only", *SMALL, "--connections", "8", "--rate", "200")
    time.sleep(1)
    run.session(f"BEGIN; SELECT COUNT(*) FROM mydyno.sbtest1; DO SLEEP({run.seconds + 60})")
    time.sleep(1)
    run.session("ALTER TABLE mydyno.sbtest1 ADD COLUMN later INT")


def connection_churn(run):
    run.server(options=("max_connections=300",)).tables("oltp_point_select", *SMALL)
    run.load("oltp_point_select", *SMALL, "--connections", "8", "--reconnect-every", "1")


def dirty_throttling(run):
    """A buffered copy onto the slow disk of the server, with small limits of dirty pages."""
    run.server("bundle.rotating-disk=on", "disk.size=4G", "vm.dirty_background=16777216", "vm.dirty=33554432").tables("oltp_update_non_index", *SMALL)
    file = data_folder(run) + "/disk/copy" if os.path.isdir(data_folder(run) + "/disk") else run.answer["datadir"] + "/../copy"
    run.files.append(file)
    copy = f"while :; do dd if=/dev/zero of={file} bs=1M count=1500 conv=notrunc 2>/dev/null; done"
    run.start("sh", "-c", copy)
    run.load("oltp_update_non_index", *SMALL, "--connections", "4", "--rate", "100")


def deadlocks(run):
    mix = HERE + "/deadlocks.toml"
    run.server(options=("innodb_flush_log_at_trx_commit=0",)).tables(mix).load(mix, "--connections", "16")


def purge_history(run):
    """A snapshot that stays open while rows are updated."""
    run.server(options=("innodb_flush_log_at_trx_commit=0", redo_log("512M"))).tables("oltp_update_non_index", *SMALL)
    run.session(f"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT; "
                f"SELECT COUNT(*) FROM mydyno.sbtest1; DO SLEEP({run.seconds + 400})")
    time.sleep(1)
    # As many rounds as this machine needs for the history to be long.
    for _ in range(10):
        words = run.bench("oltp_update_non_index", *SMALL, "--connections", "8", seconds=25)
        subprocess.run(words, env=run.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if run.history() >= LONG_HISTORY:
            break
    else:
        raise RuntimeError(f"the history has {run.history()} row versions after ten rounds")
    run.load("oltp_update_non_index", *SMALL, "--connections", "8", "--rate", "300")


def client_bound(run):
    run.server().tables("oltp_read_only", *SMALL)
    run.load("oltp_read_only", *SMALL, "--connections", "16", "--think", "50ms")


def idle_connections(run):
    run.server(options=("max_connections=1000",)).tables("oltp_read_only", *SMALL)
    run.load("oltp_read_only", *SMALL, "--connections", "4", "--idle", "400", "--rate", "20")


def allocator(run):
    """An allocator that asks the kernel for each block from 1 KiB, and statements that allocate many."""
    run.server("server.allocator=glibc", "env.MALLOC_MMAP_THRESHOLD_=1024").tables("oltp_read_only", *SMALL)
    sql = "SELECT COUNT(*) FROM (SELECT DISTINCT k FROM sbtest1 WHERE id < 10) a, (SELECT DISTINCT pad FROM sbtest1 WHERE id < 10) b"
    run.at_half_capacity("sql", "--schema", "mydyno", "--sql", sql, "--sql-protocol", "text", "--connections", "8")


# Name, how it is brought about, what must be named first.
CASES = [
    ("healthy", healthy, (CLIENT_BOUND,)),
    ("hot-row", hot_row, ("row-lock.waits",)),
    ("small-pool", small_pool, ("data-read.pool-misses",)),
    ("slow-redo", slow_redo, ("redo-sync.fsync",)),
    ("slow-binlog", slow_binlog, ("binlog-sync.fsync",)),
    ("small-redo", small_redo, ("data-write.flush-stall",)),
    ("cpu-quota", cpu_quota, ("throttled.cpu-quota",)),
    ("pinned-hog", pinned_hog, ("cpu-wait.one-core-hot",)),
    ("busy-neighbours", busy_neighbours, ("cpu-wait.other-programs",)),
    ("cpu-bound", cpu_bound, ("cpu-user.all-cores",)),
    ("swap", swap, ("swap.storm",)),
    ("charset", charset, ("cpu-user.charset-conversion",)),
    ("allocator", allocator, ("cpu-user.allocator",)),
    ("metadata-locks", metadata_locks, ("metadata-lock.pile-up",)),
    ("connection-churn", connection_churn, ("network.connection-storm",)),
    ("dirty-throttling", dirty_throttling, ("data-write.dirty-throttling",)),
    ("deadlocks", deadlocks, ("row-lock.deadlocks",)),
    ("purge-history", purge_history, ("cpu-user.purge-history",)),
    ("client-bound", client_bound, (CLIENT_BOUND,)),
    ("idle-connections", idle_connections, ("client-idle.idle-connections",)),
]
# Nothing else may be said beside it.
ALONE = ("healthy",)


def once(binary, seconds, name, bring_about, first):
    run = Run(binary, seconds)
    try:
        bring_about(run)
        found = run.watch()
    finally:
        run.end()
    named = [(each["id"], each["share"]) for each in found["bottlenecks"]]
    good = bool(named) and named[0][0] in first and (name not in ALONE or len(named) == 1)
    return found, named, good


def main():
    binary, chosen = os.path.abspath(sys.argv[1]), sys.argv[2:]
    repeat, seconds = int(os.environ.get("REPEAT", "1")), int(os.environ.get("SECONDS_EACH", "60"))
    unknown = [name for name in chosen if name not in [case[0] for case in CASES]]
    if unknown:
        sys.exit(f"no such case: {', '.join(unknown)}")
    out = os.environ.get("OUT")
    runs = right = 0
    for name, bring_about, first in CASES:
        if chosen and name not in chosen:
            continue
        for _ in range(repeat):
            runs += 1
            try:
                found, named, good = once(binary, seconds, name, bring_about, first)
            except (RuntimeError, ValueError, KeyError) as error:
                print(f"{name:18} FAILED  {error}", flush=True)
                continue
            right += good
            said = ", ".join(f"{each} {100 * share:.0f} %" for each, share in named) or "nothing"
            print(f"{name:18} {'right' if good else 'WRONG'}  {said}", flush=True)
            if out:
                with open(out, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"case": name, "right": good, "diagnosis": found}) + "\n")
    print(f"{right} of {runs} named right")
    sys.exit(0 if runs and right >= runs * 19 / 20 else 1)


if __name__ == "__main__":
    main()
