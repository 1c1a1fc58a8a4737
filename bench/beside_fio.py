#!/usr/bin/env python3
"""The probes of storage beside fio: same file size, block, pattern and threads, interleaved.

Each pair runs mydyno and fio one after the other, in an order that alternates; ratios of rates are made within a pair, and the
median of the ratios must lie within --within of 1. A shared disk's pairs differ by a quarter, so that the median of 7 is
known to a tenth and that of 61 to some 2 %.

    bench/beside_fio.py [--folder DIR] [--pairs 61] [--time 0.7] [--within 0.05]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from verdicts import ROOT, add_binary

SYNC_BYTES = 64 << 20
PAGES_BYTES = 256 << 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--folder", default=str(ROOT / "target"), help="where both write")
    parser.add_argument("--pairs", type=int, default=61)
    parser.add_argument("--time", type=float, default=0.7, help="seconds of each run")
    parser.add_argument("--within", type=float, default=0.05)
    parser.add_argument("--only", default="", help="one case, as in read.4")
    return parser.parse_args()


def probe(mydyno, folder, time_s, name, measure, options):
    command = [mydyno, "probe", name, "--json", "--quiet", "--folder", folder, "--rounds", "1"]
    command += ["--warmup", "300ms", "--time", f"{time_s}s", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    report = json.loads(done.stdout)
    found = [m for m in report["measures"] if m["id"] == measure]
    if not found:
        sys.exit(f"{measure} was not measured: {report['not_measured']}")
    return next(f["estimate"]["value"] for f in found[0]["figures"] if f["name"] == "per_s")


def fio(folder, time_s, side, options):
    path = Path(folder) / f"fio-{os.getpid()}"
    command = ["fio", "--name=peer", f"--filename={path}", "--output-format=json", "--ioengine=psync", "--thread"]
    command += ["--time_based", f"--runtime={time_s}", "--ramp_time=300ms", "--group_reporting", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        return json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0][side]["iops"]
    finally:
        path.unlink(missing_ok=True)


def cases():
    sync = ["--patterns", "overwrite", "--methods", "fdatasync", "--block", "4K", "--size", str(SYNC_BYTES)]
    yield ("overwrite.fdatasync", "fsync", "overwrite.fdatasync", sync, "write",
           ["--rw=write", "--bs=4k", f"--size={SYNC_BYTES}", "--overwrite=1", "--fdatasync=1"])
    for access in ("read", "write"):
        for threads in (1, 4):
            mine = ["--what", access, "--threads", str(threads), "--block", "16K", "--size", str(PAGES_BYTES)]
            peer = [f"--rw=rand{access}", "--bs=16k", f"--size={PAGES_BYTES}", "--direct=1", "--norandommap",
                    "--overwrite=1", f"--numjobs={threads}"]
            yield (f"{access}.{threads}", "random", f"{access}.{threads}", mine, access, peer)


def main():
    args = arguments()
    worst = 0.0
    print(f"{'case':22} {'mydyno/s':>10} {'fio/s':>10} {'ratio':>7}  range of {args.pairs} pairs")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for title, name, measure, mine, side, peer in cases():
            if args.only and args.only != title:
                continue
            ours, theirs = [], []
            for pair in range(args.pairs):
                steps = [
                    lambda: ours.append(probe(args.mydyno, folder, args.time, name, measure, mine)),
                    lambda: theirs.append(fio(folder, args.time, side, peer)),
                ]
                for step in steps if pair % 2 == 0 else reversed(steps):
                    step()
            ratios = sorted(a / b for a, b in zip(ours, theirs))
            ratio = statistics.median(ratios)
            worst = max(worst, abs(ratio - 1))
            print(f"{title:22} {statistics.median(ours):10,.0f} {statistics.median(theirs):10,.0f} {ratio:7.3f}"
                  f"  {ratios[0]:.3f} to {ratios[-1]:.3f}", flush=True)
    if worst > args.within:
        sys.exit(f"a median ratio differs from 1 by {worst:.1%}, and may by {args.within:.0%}")


if __name__ == "__main__":
    main()
