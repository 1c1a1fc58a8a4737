#!/usr/bin/env python3
"""What captured stacks cost: a closed loop's throughput while stacks are captured and after, within one run, and the CPU that they take.

A capture takes 0.5 s of every 5 s. The server's commits are counted every 0.1 s; each cycle, from the start of one capture to that of
the next, is compared with its own last half, in which nothing is captured. Neighbours on the machine change the throughput from
minute to minute, so that whole runs with and without captures do not show a few per cent; halves of 5 s share that noise.
Prints the geometric means of the ratios with their 95 % intervals (Student's t on logarithms).
"""

import argparse
import json
import math
import os
import subprocess
import tempfile
import time

TABLES = ("--tables", "1", "--table-size", "20000")
# Length of a cycle, and the part of it that is compared with the whole, in seconds.
CYCLE_S, QUIET_FROM_S = 5.0, 2.5
WARMUP_S = 2
POLL_S = 0.1


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("binary")
    ask.add_argument("--workload", default="oltp_read_write")
    ask.add_argument("--connections", default="64")
    ask.add_argument("--seconds", type=int, default=180)
    options = ask.parse_args()
    with tempfile.TemporaryDirectory(prefix="mydyno-captures-") as state:
        environment = {**os.environ, "MYDYNO_STATE": state + "/s"}
        binary = os.path.abspath(options.binary)

        def mydyno(*words):
            return subprocess.run([binary, *words], check=True, capture_output=True, text=True, env=environment).stdout

        server = json.loads(mydyno("server", "up", "cost", "--json"))
        target = [options.workload, "--dsn", server["dsn"], *TABLES]
        try:
            mydyno("bench", target[0], "prepare", *target[1:])
            load = [binary, "bench", target[0], "run", *target[1:], "--connections", options.connections, "--time",
                    f"{options.seconds}s", "--warmup", f"{WARMUP_S}s", "--quiet", "--allow-load", "--out", state + "/run"]
            polls = watch(subprocess.Popen(load, env=environment, stdout=subprocess.DEVNULL), server)
            lines = mydyno("watch", "--replay", state + "/run", "--json").strip().splitlines()
            share = json.loads(lines[-1])["figures"]["observe.profile_cpu_share"]
        finally:
            mydyno("server", "down", "cost")
    during, whole = ratios(polls)
    print(f"{len(whole)} captures took {100 * share:.2f} % of a CPU")
    print("throughput while stacks are captured, over that without: " + interval(during))
    print("throughput of whole cycles, over that without:           " + interval(whole))


def watch(load, server):
    """Times, commits of the server so far and whether mydyno has performance events open, until the load ends."""
    with open(server["password_file"], encoding="utf-8") as file:
        environment = {**os.environ, "MYSQL_PWD": file.read().strip()}
    words = ["mariadb", "-u", server["user"], "-S", server["socket"], "-N", "-B", "--unbuffered"]
    client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment)
    polls = []
    try:
        while load.poll() is None:
            captures = has_events(load.pid)
            client.stdin.write("SHOW GLOBAL STATUS LIKE 'Com_commit';\n")
            commits = int(client.stdout.readline().split()[1])
            polls.append((time.monotonic(), commits, captures))
            time.sleep(POLL_S)
    finally:
        client.stdin.close()
        client.wait()
    if load.returncode != 0:
        raise SystemExit(f"the load ended with {load.returncode}")
    return polls


def has_events(pid):
    """Whether a process or a child of it has performance events open."""
    pids = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="utf-8") as file:
                pids += [int(child) for child in file.read().split()]
    except OSError:
        return False
    return any("perf_event" in link for pid in pids for link in links(pid))


def links(pid):
    """What the descriptors of a process refer to."""
    try:
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            try:
                yield os.readlink(f"/proc/{pid}/fd/{descriptor}")
            except OSError:
                continue
    except OSError:
        return


def ratios(polls):
    """Logarithms, by capture: its throughput, and that of its whole cycle, to that of the cycle's last half."""
    starts = [i for i in range(1, len(polls)) if polls[i][2] and not polls[i - 1][2]]
    during, whole = [], []
    for start, end in zip(starts, starts[1:]):
        last = next(i for i in range(start, end) if not polls[i][2])
        quiet = next((i for i in range(start, end) if polls[i][0] >= polls[start][0] + QUIET_FROM_S), end)
        if not 0.8 * CYCLE_S < polls[end][0] - polls[start][0] < 1.2 * CYCLE_S or quiet >= end - 1:
            continue
        without = rate(polls[quiet], polls[end - 1])
        during.append(math.log(rate(polls[start], polls[last - 1]) / without))
        whole.append(math.log(rate(polls[start], polls[end]) / without))
    return during, whole


def rate(begin, end):
    return (end[1] - begin[1]) / (end[0] - begin[0])


def interval(logs):
    """The geometric mean with its interval; the quantile of Student's t by its first expansion beyond the normal one."""
    mean = sum(logs) / len(logs)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in logs) / (len(logs) - 1))
    z, freedom = 1.96, len(logs) - 1
    half = (z + (z**3 + z) / (4 * freedom)) * deviation / math.sqrt(len(logs))
    return f"{math.exp(mean):.4f} ({math.exp(mean - half):.4f} to {math.exp(mean + half):.4f})"


if __name__ == "__main__":
    main()
