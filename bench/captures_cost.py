#!/usr/bin/env python3
"""What captured stacks cost: throughput of a closed loop with and without them, in turns, and the CPU that they take.

Pairs of benches on one private server, each pair in a random order; the geometric mean of the ratios with its 95 % interval
(Student's t on logarithms). Many short benches tell more than few long ones, since neighbours share the machine's noise.
"""

import argparse
import json
import math
import os
import random
import subprocess
import tempfile

# The 97.5 % quantiles of Student's t, by degrees of freedom.
T = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201, 14: 2.145, 19: 2.093}
TABLES = ("--tables", "1", "--table-size", "20000")


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("binary")
    ask.add_argument("--workload", default="oltp_read_write")
    ask.add_argument("--pairs", type=int, default=8)
    ask.add_argument("--seconds", type=int, default=15, help="of each bench; a capture begins every 5 s")
    options = ask.parse_args()
    binary, pairs, seconds, workload = os.path.abspath(options.binary), options.pairs, options.seconds, options.workload
    with tempfile.TemporaryDirectory(prefix="mydyno-captures-") as state:
        environment = {**os.environ, "MYDYNO_STATE": state + "/s"}

        def mydyno(*words):
            return subprocess.run([binary, *words], check=True, capture_output=True, text=True, env=environment).stdout

        dsn = json.loads(mydyno("server", "up", "cost", "--json"))["dsn"]
        try:
            mydyno("bench", workload, "prepare", "--dsn", dsn, *TABLES)

            def run(nth, *extra):
                out = f"{state}/{nth}"
                words = ["bench", workload, "run", "--dsn", dsn, *TABLES, "--connections", "64", "--time", f"{seconds}s",
                         "--warmup", "2s", "--json", "--quiet", "--allow-load", "--out", out, *extra]
                step = json.loads(mydyno(*words))["steps"][0]
                return step["throughput"]["transactions_per_s"]["value"], out

            logs, shares = [], []
            for pair in range(pairs):
                order = ["with", "without"]
                random.shuffle(order)
                tps = {}
                for arm in order:
                    tps[arm], out = run(f"{pair}-{arm}", *([] if arm == "with" else ["--no-profile"]))
                    if arm == "with":
                        lines = mydyno("watch", "--replay", out, "--json").strip().splitlines()
                        figures = json.loads(lines[-1])["figures"]
                        shares.append(figures["observe.profile_cpu_share"])
                logs.append(math.log(tps["with"] / tps["without"]))
                print(f"pair {pair + 1}: {tps['with']:.0f} with, {tps['without']:.0f} without: {math.exp(logs[-1]):.4f}; "
                      f"captures took {100 * shares[-1]:.2f} % of a CPU", flush=True)
        finally:
            mydyno("server", "down", "cost")
    mean = sum(logs) / len(logs)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in logs) / (len(logs) - 1))
    half = T.get(len(logs) - 1, 2.05) * deviation / math.sqrt(len(logs))
    print(f"throughput with captures over without: {math.exp(mean):.4f} ({math.exp(mean - half):.4f} to {math.exp(mean + half):.4f}); "
          f"captures took {100 * sum(shares) / len(shares):.2f} % of a CPU on average")


if __name__ == "__main__":
    main()
