#!/usr/bin/env python3
"""`mydyno watch` beside iostat, mpstat and vmstat over the same window, and what watching costs.

watch_beside_sysstat.py MYDYNO [--window 30] [--seconds 60] [--connections 64]

A private server is loaded (oltp_read_write). The first part compares one window; the second samples at 1 s and reports mydyno's own
CPU, late samples and the size of the record. It needs iostat and mpstat (Debian: sysstat) and vmstat (procps) on the PATH.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile


def started(command, **more):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)


def compare(mydyno, window):
    """Starts all four at once and prints figure, mydyno's value, theirs, and the difference."""
    w = str(window)
    watch = started([mydyno, "watch", "--host-only", "--json", "--quiet", "--once", "--interval", w + "s"])
    iostat = started(["iostat", "-d", "-x", "-y", "-o", "JSON", w, "1"])
    mpstat = started(["mpstat", "-o", "JSON", w, "1"])
    vmstat = started(["vmstat", w, "2"])
    ours = json.loads(watch.communicate()[0])["figures"]
    cpu = json.loads(mpstat.communicate()[0])["sysstat"]["hosts"][0]["statistics"][0]["cpu-load"][0]
    disks = json.loads(iostat.communicate()[0])["sysstat"]["hosts"][0]["statistics"][0]["disk"]
    lines = vmstat.communicate()[0].splitlines()
    memory = dict(zip(lines[1].split(), map(float, lines[3].split())))
    rows = [
        ("CPU user, %", ours["host.cpu.user_share"] * 100, cpu["usr"] + cpu["nice"]),
        ("CPU system, %", ours["host.cpu.system_share"] * 100, cpu["sys"] + cpu["irq"] + cpu["soft"]),
        ("CPU iowait, %", ours["host.cpu.iowait_share"] * 100, cpu["iowait"]),
        ("CPU steal, %", ours["host.cpu.steal_share"] * 100, cpu["steal"]),
        ("context switches, 1/s", ours["host.context_switches_per_s"], memory["cs"]),
        ("swap in, pages/s", ours["host.swap.in_pages_per_s"], memory["si"] / 4),
    ]
    for disk in disks:
        name = disk["disk_device"]
        if "host.disk.%s.util_share" % name not in ours or disk["w/s"] + disk["r/s"] < 1:
            continue
        of = lambda what: ours.get("host.disk.%s.%s" % (name, what), 0.0)
        rows += [
            (name + " reads, 1/s", of("reads_per_s"), disk["r/s"]),
            (name + " writes, 1/s", of("writes_per_s"), disk["w/s"]),
            (name + " read, kB/s", of("read_bytes_per_s") / 1024, disk["rkB/s"]),
            (name + " written, kB/s", of("write_bytes_per_s") / 1024, disk["wkB/s"]),
            (name + " read time, ms", of("read_us") / 1000, disk["r_await"]),
            (name + " write time, ms", of("write_us") / 1000, disk["w_await"]),
            (name + " busy, %", of("util_share") * 100, disk["util"]),
            (name + " queue", of("queue"), disk["aqu-sz"]),
        ]
    print("| figure, over %s s | mydyno | sysstat, vmstat | difference |\n|---|---|---|---|" % w)
    for name, mine, theirs in rows:
        largest = max(abs(mine), abs(theirs))
        relative = "%+.2f %%" % ((mine - theirs) / largest * 100) if largest >= 0.005 else "both none"
        print("| %s | %.2f | %.2f | %s |" % (name, mine, theirs, relative))


def cost(mydyno, dsn, seconds):
    """CPU of mydyno and size of the record while it samples once a second."""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record")
        watch = started(
            [mydyno, "watch", "--dsn", dsn, "--json", "--quiet", "--count", str(seconds), "--record", record]
        )
        text = watch.stdout.read()
        _, status, usage = os.wait4(watch.pid, 0)
        if status != 0:
            sys.exit("the watch failed")
        size = sum(entry.stat().st_size for entry in os.scandir(record))
    intervals = [line for line in map(json.loads, text.splitlines()) if line["schema"].startswith("mydyno.watch-")]
    late = [interval["late_s"] for interval in intervals if interval.get("late_s") is not None]
    whole = sum("server.questions_per_s" in interval["figures"] for interval in intervals)
    used = usage.ru_utime + usage.ru_stime
    took = sum(interval["over_s"] for interval in intervals)
    print("\n| measure at 1 s, over %.0f s | value |\n|---|---|" % took)
    print("| CPU of mydyno, share of one CPU | %.2f %% |" % (used / took * 100))
    print("| samples later than 10 ms | %d of %d, the latest %.1f ms |" % (sum(l > 0.01 for l in late), len(late), max(late) * 1e3))
    print("| intervals with the server's figures | %d of %d |" % (whole, len(intervals)))
    print("| record | %.1f kB, %.1f MB an hour |" % (size / 1e3, size / took * 3600 / 1e6))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mydyno")
    parser.add_argument("--window", type=int, default=30)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--connections", default="64")
    args = parser.parse_args()
    mydyno = os.path.abspath(args.mydyno)
    with tempfile.TemporaryDirectory(prefix="mw", dir="/tmp") as home:
        os.environ["MYDYNO_STATE"] = os.path.join(home, "s")
        try:
            up = subprocess.run(
                [mydyno, "server", "up", "w", "--json", "--quiet"], capture_output=True, text=True, check=True
            )
            dsn = json.loads(up.stdout)["dsn"]
            load = ["bench", "oltp_read_write", "--dsn", dsn, "--allow-load", "--quiet", "--table-size", "20000"]
            subprocess.run([mydyno] + load[:2] + ["prepare"] + load[2:], check=True, stdout=subprocess.DEVNULL)
            length = "%ds" % (args.window + args.seconds + 15)
            options = ["--connections", args.connections, "--time", length, "--warmup", "0s", "--no-observe"]
            running = started([mydyno] + load[:2] + ["run"] + load[2:] + options)
            compare(mydyno, args.window)
            cost(mydyno, dsn, args.seconds)
            running.terminate()
            running.communicate()
        finally:
            subprocess.run([mydyno, "host", "restore", "--all"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


main()
