#!/usr/bin/env python3
"""Resident memory of `mydyno sysbench` beside sysbench with many threads of Lua, in turn.

    bench/compat_memory.py [--threads 4000] [--pairs 3] [--time 8] [--without-server] [--script FILE]

Two cases: a dry run of oltp_point_select, and a script that sends one SELECT of a row as text on open connections. Peaks are the
system's account of each process (wait4), from its start to its end. Ratios are made within a pair; medians and ranges
are printed. Exit status 1 when something that must hold does not.
"""

import argparse
import tempfile
from pathlib import Path

import beside_sysbench as peers
from verdicts import Verdicts, add_binary, spread

# Of sysbench's resident memory, at most.
MUST = 0.5

SCRIPT = """
function thread_init()
   drv = sysbench.sql.driver()
   con = drv:connect()
end

function event() con:query("SELECT 1") end

function thread_done() con:disconnect() end
"""


def compare(options, case, words, pid, verdicts):
    programs = {"mydyno": [options.mydyno, "sysbench"], "sysbench": ["sysbench"]}
    pairs = []
    for number in range(options.pairs):
        order = list(programs) if number % 2 == 0 else list(programs)[::-1]
        pairs.append({})
        for name in order:
            _, cost = peers.run([*programs[name], *words, "run"], pid)
            pairs[-1][name] = cost["resident"] / 1e6
    ratios = [pair["mydyno"] / pair["sysbench"] for pair in pairs]
    cells = [spread([pair[name] for pair in pairs], 0) for name in programs]
    print(f"| {case} | {cells[0]} | {cells[1]} | {spread(ratios)} |", flush=True)
    verdicts.judge(f"{case}, {options.threads} threads, resident", sorted(ratios)[len(ratios) // 2], "<=", MUST)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_binary(parser)
    parser.add_argument("--threads", type=int, default=4000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--time", type=int, default=8, help="seconds of each run")
    parser.add_argument("--without-server", action="store_true", help="the dry run only")
    parser.add_argument("--script", help="a script in the place of the one that sends SELECT 1")
    options = parser.parse_args()
    options.against, options.workload, options.table_size = None, "oltp_point_select", 1000
    verdicts = Verdicts()
    limits = [f"--threads={options.threads}", f"--time={options.time}"]
    print(f"{options.threads} threads, {options.pairs} pairs of {options.time} s, median (range)\n")
    print("| case | mydyno, MB | sysbench, MB | mydyno ÷ sysbench |\n|---|---|---|---|")
    compare(options, "dry run of oltp_point_select", ["oltp_point_select", "--mysql-dry-run", *limits], "self", verdicts)
    if not options.without_server:
        with peers.private_server(options) as server, tempfile.TemporaryDirectory() as folder:
            config, script = Path(folder, "options.cnf"), Path(folder, "one_select.lua")
            config.touch(mode=0o600)
            config.write_text(f"mysql-password={Path(server['password_file']).read_text().strip()}\n")
            script.write_text(SCRIPT)
            words = [f"--config-file={config}", options.script or str(script), f"--mysql-socket={server['socket']}",
                     f"--mysql-user={server['user']}", f"--mysql-db={peers.DATABASE}", *limits]
            compare(options, "open connections, SELECT 1", words, server["pid"], verdicts)
    verdicts.end()


if __name__ == "__main__":
    main()
