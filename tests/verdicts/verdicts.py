#!/usr/bin/env python3
"""Experiments whose answers follow from their construction, each through the whole binary.

verdicts.py BINARY [NAME…]: all, or the named ones. The exit status is 1 where an answer is another one. BUDGET (as in 10m) takes the
place of the experiments' own short budgets.
"""

import json
import os
import subprocess
import sys
import tempfile

SUPPORTED, REFUTED, UNDECIDED = "supported", "refuted", "undecided"


def ratio(verdict):
    return verdict["responses"][0]["effect_ratio"]["value"]


def slower(verdict):
    return verdict["verdict"] == SUPPORTED and ratio(verdict) < 1


def faster(verdict):
    return verdict["verdict"] == SUPPORTED and ratio(verdict) > 1


def supported(verdict):
    return verdict["verdict"] == SUPPORTED


def no_difference(verdict):
    return verdict["verdict"] in (REFUTED, UNDECIDED)


def client_bound(verdict):
    decides = [threat["id"] for threat in verdict["threats"] if threat["decides"]]
    return verdict["verdict"] == UNDECIDED and decides == ["client-bound"]


def with_price(verdict):
    crashes = verdict.get("price", {}).get("crashes", [])
    counted = all(crash["lost"] is not None for crash in crashes)
    return supported(verdict) and len(crashes) == 2 and counted and "acknowledged commits" in verdict["answer"]


# Name, words of the command, what the verdict must be, and whether MySQL 8.0 is needed.
CASES = [
    ("sync-delay", "prove sync-delay", supported, False),
    ("sync-delay-compare", "compare oltp_update_non_index --both workload.tables=1 --treatment server.sync_delay=1ms --delta 5%", slower, False),
    ("same-server", "prove same-server", no_difference, False),
    # 2,000 rows of the table do not fit into 256K, so that the sort merges runs from a file; 3M hold them.
    ("sort-buffer", "compare oltp_read_only --mode in-place --baseline variable.sort_buffer_size=256K --treatment variable.sort_buffer_size=3M"
     " --both workload.tables=1 --both workload.table-size=50000 --both workload.point-selects=0 --both workload.simple-ranges=0"
     " --both workload.sum-ranges=0 --both workload.distinct-ranges=0 --both workload.order-ranges=1 --both workload.range-size=2000"
     " --both workload.skip-trx=true --both option.max_connections=200 --connections 100 --budget 90s --delta 2%", faster, False),
    ("sync-binlog", "prove binlog-sync --allow-host-change", with_price, False),
    ("buffer-pool", "prove buffer-pool-size", supported, False),
    (
        "client",
        "compare oltp_point_select --both workload.tables=1 --both workload.table-size=10000 --mode in-place --treatment client.cpus=0",
        client_bound,
        False,
    ),
    (
        "deadlock-detection",
        "compare hot_row --both server.engine=mysql-8.0 --baseline innodb_deadlock_detect=on --treatment innodb_deadlock_detect=off"
        " --both max_connections=400 --connections 256 --delta 5%",
        supported,
        True,
    ),
]


def has_mysql(binary):
    levers = json.loads(subprocess.run([binary, "host", "levers", "--json"], check=True, capture_output=True).stdout)
    text = json.dumps(levers)
    return "MySQL 8.0" in text


def main():
    binary, chosen = os.path.abspath(sys.argv[1]), sys.argv[2:]
    budget = os.environ.get("BUDGET")
    wrong = 0
    for name, words, must, needs_mysql in CASES:
        if chosen and name not in chosen:
            continue
        if needs_mysql and not has_mysql(binary):
            print(f"{name}: not here: no MySQL 8.0 on the PATH", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="mydyno-verdicts-") as state:
            command = [binary, *words.split(), "--json", "--quiet"] + (["--budget", budget] if budget else [])
            ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MYDYNO_STATE": state + "/s"})
            try:
                verdict = json.loads(ended.stdout)
            except ValueError:
                wrong += 1
                print(f"{name}: FAILED with status {ended.returncode}: {ended.stderr.strip()}", flush=True)
                subprocess.run([binary, "host", "restore"], env={**os.environ, "MYDYNO_STATE": state + "/s"})
                continue
        good = must(verdict)
        wrong += not good
        print(f"{name}: {'as constructed' if good else 'WRONG'}: {verdict['answer']}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
