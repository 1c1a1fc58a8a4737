#!/usr/bin/env python3
"""How long a server's data take to be there again: 1 GiB of tables, kept once, brought back N times each way.

    bench/restore.py [--rows 4400000] [--times 5] [--folder DIR]

Ways: shared (their blocks, on the disk of the kept data) and copied (to the host's file system). Beside each copy, cp copies the same
files from a cold cache: what the disk can do at that time. Both are synced file by file. Exit status 1 when something that must hold does
not.
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

from verdicts import Verdicts, add_binary, spread


def mydyno(options, *words):
    environment = dict(os.environ, MYDYNO_STATE=f"{options.state}", MYDYNO_CACHE=f"{options.cache}")
    done = subprocess.run([options.mydyno, *words], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"mydyno {' '.join(words)}: {done.stderr}")
    return done


def prepare(options):
    """The data, kept under a name."""
    up = mydyno(options, "server", "up", "a", "--json", "--set", "innodb_buffer_pool_size=512M")
    dsn = json.loads(up.stdout)["dsn"]
    mydyno(options, "bench", "oltp_read_write", "prepare", "--dsn", dsn, "--tables=1", f"--table-size={options.rows}")
    mydyno(options, "server", "down", "a", "--keep-data", "seed")
    kept = json.loads(mydyno(options, "server", "data", "list", "--json").stdout)["data"][0]
    print(f"kept: {kept['bytes'] / 2**30:.2f} GiB, on {kept['disk'] or 'the host file system'}")


def synced(folder):
    """Writes a folder's files to disk, and forgets what the page cache has of them."""
    for path in folder.rglob("*"):
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def brought_back_s(options, *how):
    """Seconds until a server's data were there, whether nothing was copied, and seconds of cp if they were."""
    said = mydyno(options, "server", "up", "b", "--data", "seed", *how).stderr
    took = re.search(r"Brought back \d+ files \(.*\) in ([\d.]+) ms: (.*)", said)
    folder, again, cp = options.state / "servers/b/data", options.state / "again", None
    begin = time.monotonic()
    if folder.exists():
        synced(folder)
    copied = float(took[1]) / 1000 + time.monotonic() - begin
    if folder.exists():
        begin = time.monotonic()
        subprocess.run(["cp", "-r", "--reflink=never", folder, again], check=True)
        synced(again)
        cp = time.monotonic() - begin
        subprocess.run(["rm", "-r", again], check=True)
    mydyno(options, "server", "down", "b", "--quiet")
    return copied, "nothing copied" in took[2], cp


def measured(options):
    prepare(options)
    shared, ratios, all_shared = [], [], True
    for _ in range(options.times):
        took, nothing_copied, _ = brought_back_s(options)
        shared.append(took)
        all_shared &= nothing_copied
        copied, _, cp = brought_back_s(options, "--copy-data")
        ratios.append(copied / cp)
        print(f"  shared {took * 1000:.1f} ms, copied and synced {copied:.2f} s, cp and sync {cp:.2f} s")
    mydyno(options, "server", "data", "remove", "seed")
    return shared, ratios, all_shared


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_400_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--folder", help="where the data lie [default: the folder for temporary files]")
    add_binary(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        options.state, options.cache = Path(folder) / "state", Path(folder) / "cache"
        try:
            shared, ratios, all_shared = measured(options)
        finally:
            # However it ended: nothing may run or be mounted in a folder that is removed.
            mydyno(options, "host", "restore", "--all", "--quiet")
    verdicts = Verdicts()
    print(f"shared: {spread(shared, 4)} s")
    verdicts.judge("starts at which nothing was copied", float(all_shared), ">=", 1, "of all")
    verdicts.judge("brought back by shared blocks, median", statistics.median(shared), "<=", 1.0, "s")
    print(f"copied and synced, of cp: {spread(ratios)}")
    verdicts.judge("copied, of cp, median", statistics.median(ratios), "<=", 1.1)
    verdicts.end()


if __name__ == "__main__":
    main()
