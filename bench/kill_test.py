#!/usr/bin/env python3
"""SIGKILL of `mydyno server up` and of `mydyno bench` at random instants: what is left after `mydyno host restore`?

Nothing may be: no process, file, folder or journal entry, and records stay readable. The instants are uniform over the
life of each command, half of them in a state folder without templates; every second `host restore` is killed as well and
run again. The checks are those of tests/e2e/kills.rs, which `make test` runs at ten instants.

    bench/kill_test.py [--instants 50] [--seed N] [--mydyno target/release/mydyno]
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instants", type=int, default=50, help="of each command")
    parser.add_argument("--seed", type=int, help="the same instants again")
    parser.add_argument("--mydyno", default=os.environ.get("MYDYNO_BIN", str(ROOT / "target/release/mydyno")))
    options = parser.parse_args()
    if not os.access(options.mydyno, os.X_OK):
        sys.exit(f"{options.mydyno} is not there: run `make build`, or name another with --mydyno")
    environment = dict(os.environ, MYDYNO_BIN=str(Path(options.mydyno).resolve()), MYDYNO_KILLS=str(options.instants))
    if options.seed is not None:
        environment["MYDYNO_SEED"] = str(options.seed)
    command = [os.environ.get("CARGO", "cargo"), "test", "--locked", "--quiet", "-p", "mydyno", "--test", "e2e"]
    command += ["--", "kills::", "--nocapture", "--test-threads", "1"]
    run = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    counts = re.findall(r"SIGKILL of (.+?): nothing left (\d+) of (\d+) times; (.*)", run.stdout)
    for name, clean, kills, rest in counts:
        print(f"{name}: {clean} of {kills} ({rest})")
    if len(counts) != 2 or run.returncode != 0:
        print(run.stdout, file=sys.stderr)
        sys.exit(1)
    print(f"nothing left {sum(int(c[1]) for c in counts)} of {sum(int(c[2]) for c in counts)} times")


if __name__ == "__main__":
    main()
