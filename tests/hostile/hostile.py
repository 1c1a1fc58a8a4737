#!/usr/bin/env python3
"""Damaged and hostile files before every verb that reads files of users.

The files follow docs/reference/schemas and the guides, not the parsers. Each case is one file, folder or record, a
command, and whether its damage is certain. A case passes when mydyno ends by itself with status 0 to 3, without a panic,
within --limit-s and --limit-mb, prints no control character, prints a JSON document where it was asked for one with
status 0, and says so (status 1 to 3) where the damage is certain.

    hostile.py --bin target/release/mydyno --record RUN_FOLDER [--count 1600] [--seed 1] [--kind record] [--keep DIR]

Prints a line for each failed case and one at the end: files, largest memory, longest time.
"""
import argparse, collections, json, os, random, re, resource, shutil, signal, socket, subprocess, sys, tempfile, time

from cases import Case, record_case, growth_case, fact_names, bundle_case, option_case, toml_case, design_case, state_case
from damage import ROOT

subprocess._USE_VFORK = False  # a child of vfork begins with the peak memory of its parent
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Launcher:
    """A small process that starts the commands: a child's peak memory begins with that of the process that forks it."""

    def __init__(self):
        here, there = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            here.close()
            with there.makefile("r") as asked:
                for line in asked:
                    there.sendall((json.dumps(self.launch(*json.loads(line))) + "\n").encode())
            os._exit(0)
        there.close()
        self.socket, self.answers = here, here.makefile("r")

    @staticmethod
    def launch(argv, env, cwd, out, err, seconds):
        def limits():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        start = time.monotonic()
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=env, cwd=cwd, preexec_fn=limits)
        while True:
            pid, raw, used = os.wait4(child.pid, os.WNOHANG)
            if pid:
                status = os.waitstatus_to_exitcode(raw)
                break
            if time.monotonic() - start > 3 * seconds:
                os.killpg(child.pid, signal.SIGKILL)
                _, _, used = os.wait4(child.pid, 0)
                status = "killed"
                break
            time.sleep(0.002)
        child.returncode = 0
        return status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024

    def run(self, *asked):
        self.socket.sendall((json.dumps(asked) + "\n").encode())
        return json.loads(self.answers.readline())


def run(launcher, binary, case, cwd, seconds, megabytes):
    env = {"PATH": os.environ["PATH"], "HOME": cwd, "MYDYNO_STATE": os.path.join(cwd, "state"), "MYDYNO_CACHE": os.path.join(cwd, "cache"), **case.env}
    out, err = os.path.join(cwd, "stdout"), os.path.join(cwd, "stderr")
    status, cpu, peak = launcher.run([binary] + case.argv, env, cwd, out, err, seconds)
    with open(out, "rb") as f:
        text = f.read(8 << 20).decode("utf-8", "replace")
    with open(err, "rb") as f:
        said = f.read(1 << 20).decode("utf-8", "replace")
    faults = []
    if status not in (0, 1, 2, 3):
        faults.append(f"status {status}")
    if "panicked" in said or "stack overflow" in said:
        faults.append("panic")
    if cpu > seconds or status == "killed":
        faults.append(f"{cpu:.1f} s of CPU")
    if peak > megabytes:
        faults.append(f"{peak:.0f} MB")
    found = CONTROL.search(text) or CONTROL.search(said)
    if found:
        faults.append(f"control character {found[0]!r}")
    if status == 0 and ("--json" in case.argv or "--sarif" in case.argv) and os.path.getsize(out) < 8 << 20:
        try:
            json.loads(text)
        except ValueError as e:
            faults.append(f"no JSON: {e}")
    if case.certain and status == 0:
        faults.append("damage not told")
    if status in (1, 2, 3) and not said.strip() and not text.strip():
        faults.append("no word")
    return faults, peak, cpu, status, said


def keep(place, to):
    """Copies what is small and regular: a sparse file would take its whole size."""
    def odd(folder, names):
        paths = [(name, os.path.join(folder, name)) for name in names]
        return [n for n, p in paths if not os.path.isdir(p) and (not os.path.isfile(p) or os.path.getsize(p) > 16 << 20)]

    shutil.copytree(place, to, symlinks=True, dirs_exist_ok=True, ignore=odd)


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--bin", required=True)
    ask.add_argument("--record", required=True, help="a run folder that mydyno wrote, undamaged")
    ask.add_argument("--count", type=int, default=1600)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--kind")
    ask.add_argument("--case", type=int, help="this case alone, kept, with its output")
    ask.add_argument("--limit-s", type=float, default=10)
    ask.add_argument("--limit-mb", type=float, default=200)
    ask.add_argument("--keep", help="folder in which the files of failed cases stay")
    args = ask.parse_args()
    binary, clean = os.path.abspath(args.bin), os.path.abspath(args.record)
    toml = {
        "claim": [os.path.join(d, f) for d, _, fs in sorted(os.walk(os.path.join(ROOT, "claims"))) for f in sorted(fs) if f.endswith(".toml")],
        "experiment": sorted(os.path.join(ROOT, "experiments", f) for f in os.listdir(os.path.join(ROOT, "experiments")) if f.endswith(".toml")),
        "mix": sorted(os.path.join(ROOT, "workloads", f) for f in os.listdir(os.path.join(ROOT, "workloads")) if f.endswith(".toml")),
    }
    names = fact_names()
    order = ["record"] * 5 + ["bundle", "bundle", "options", "options", "claim", "claim", "experiment", "experiment", "mix", "mix", "design", "state", "growth"]
    launcher = Launcher()
    top = tempfile.mkdtemp(prefix="mydyno-hostile-")
    failed, done, most, longest = 0, 0, (0, ""), (0, "")
    kinds, counts = collections.Counter(), collections.Counter()
    try:
        base = run(launcher, binary, Case("record", "undamaged", ["report", clean, "--json"], False, {}), top, args.limit_s, args.limit_mb)
        if base[0] or base[3] != 0:
            sys.exit(f"the undamaged record is refused: {base}")
        for i in range(args.count):
            kind = order[i % len(order)]
            n = counts[kind]
            counts[kind] += 1
            if (args.kind and kind != args.kind) or (args.case is not None and i != args.case):
                continue
            rng = random.Random(args.seed * 1_000_003 + i)
            place = os.path.join(top, f"{i}-{kind}")
            os.mkdir(place)
            if kind == "record":
                case = record_case(os.path.join(place, "run"), clean, rng, n)
            elif kind == "growth":
                case = growth_case(os.path.join(place, "run"), clean, rng, n)
            elif kind == "bundle":
                case = bundle_case(os.path.join(place, "b.json"), names, rng, n)
            elif kind == "options":
                case = option_case(os.path.join(place, "my.cnf"), rng, n)
            elif kind == "design":
                case = design_case(os.path.join(place, "p"), rng, n)
            elif kind == "state":
                case = state_case(os.path.join(place, "state"), rng, n)
            else:
                folder = os.path.join(place, "f", "memory") if kind == "claim" else os.path.join(place, "f")
                os.makedirs(folder)
                case = toml_case(kind, os.path.join(folder, os.path.basename(rng.choice(toml[kind]))), toml[kind], rng, n)
                if kind == "claim":
                    case = case._replace(argv=["claims", "--check", os.path.join(place, "f")])
            faults, peak, cpu, status, said = run(launcher, binary, case, top, args.limit_s, args.limit_mb)
            done += 1
            kinds[kind] += 1
            most, longest = max(most, (peak, f"{i} {case.kind} {case.name}")), max(longest, (cpu, f"{i} {case.kind} {case.name}"))
            if faults:
                failed += 1
                print(f"FAILED {i} {case.kind}: {case.name}: {', '.join(faults)} (status {status}) {' '.join(case.argv)[:160]}: {said.strip()[:200]!r}", flush=True)
            if args.case is not None:
                print(case, status, peak, cpu, said)
            if args.keep and (args.case is not None or faults):
                keep(place, os.path.join(args.keep, os.path.basename(place)))
            shutil.rmtree(place, ignore_errors=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"{done} hostile files ({', '.join(f'{k} {v}' for k, v in sorted(kinds.items()))}): {failed} failed · most memory {most[0]:.0f} MB ({most[1]}) · longest {longest[0]:.1f} s of CPU ({longest[1]})")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
