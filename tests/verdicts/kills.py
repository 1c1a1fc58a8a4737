#!/usr/bin/env python3
"""SIGKILL, SIGTERM and SIGINT at random instants of experiments that change the host: nothing may stay changed.

kills.py [--kills 60] [--seed N] BINARY [NAME…]: the experiments in turn (root). Each is begun, ended at an instant between its start and
some seconds later, and resumed with the next row of its table, as often as it has instants; then it is carried out to its end.
After SIGTERM and SIGINT everything must be as before; after SIGKILL when `host restore` has ended. Rows that were measured must stay.
The exit status is 1 where one of this does not hold.
"""

import argparse
import glob
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPERIMENTS = ["thp", "dirty-limits", "os-compare", "overcommit-memory"]
# Rows as short as the machinery allows: their figures do not matter here.
SHORT = ["--quick", "--allow-host-change", "--budget=90s", "--starts=3", "--slice=500ms", "--settle=100ms", "--warmup=300ms", "--json", "--quiet"]
# What these experiments change, as the kernel shows it.
SETTINGS = [
    "/sys/kernel/mm/transparent_hugepage/*", "/proc/sys/vm/dirty_*", "/proc/sys/vm/swappiness", "/proc/sys/vm/nr_hugepages", "/proc/swaps",
    "/proc/sys/kernel/sched_autogroup_enabled",
]
# Latest instant at which a command is ended, in seconds after its start: some rows of an experiment.
LATEST_S = 12


def settings():
    """The value of each setting. Sizes of /proc/swaps that the kernel counts are left out."""
    found = {}
    for pattern in SETTINGS:
        for path in filter(os.path.isfile, glob.glob(pattern)):
            text = Path(path).read_text()
            found[path] = [line.split()[0] for line in text.splitlines()] if path == "/proc/swaps" else text.strip()
    return found


def traces(state):
    """Processes, mounts and loop devices that belong to a state folder."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            command = Path(folder, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(state) in command and int(folder.split("/")[-1]) != os.getpid():
            found.append(command[:120])
    found += [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(state) in line]
    for backing in glob.glob("/sys/block/loop*/loop/backing_file"):
        try:
            file = Path(backing).read_text()
        except OSError:
            continue
        found += [backing] * (str(state) in file)
    return found


def differences(before, state):
    now = settings()
    changed = [f"{path} is {now.get(path)!r}, was {before.get(path)!r}" for path in sorted({*before, *now}) if before.get(path) != now.get(path)]
    return changed + [f"left: {trace}" for trace in traces(state)]


def slices(folder):
    """Whole lines of what was measured."""
    path = folder / "slices.jsonl"
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1]


class Course:
    """One experiment, ended at random instants."""

    def __init__(self, binary, name, top, draw):
        self.binary, self.name, self.draw = binary, name, draw
        self.state = top / name
        self.state.mkdir(mode=0o700)
        self.begun, self.child = 0, None
        self.environment = {**os.environ, "MYDYNO_STATE": str(self.state)}
        self.before, self.faults, self.ended = settings(), [], 0
        self.begin()

    def begin(self):
        """A new execution, in a folder of its own."""
        self.begun += 1
        self.out, self.kept = self.state / f"experiment-{self.begun}", ""

    def command(self):
        if (self.out / "slices.jsonl").exists():
            return [self.binary, "prove", "--resume", str(self.out), "--allow-host-change", "--json", "--quiet"]
        return [self.binary, "prove", self.name, *SHORT, f"--out={self.out}"]

    def start(self):
        self.child = subprocess.Popen(self.command(), env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return self.child

    def restore(self):
        """Ends what runs, if anything, and puts the host back."""
        if self.child and self.child.poll() is None:
            self.child.kill()
            self.child.communicate()
        subprocess.run([self.binary, "host", "restore", "--quiet"], env=self.environment, capture_output=True, check=False)

    def fault(self, what):
        self.faults.append(what)
        print(f"FAILED {self.name}: {what}", flush=True)

    def end_once(self, kind):
        """Ends the experiment at an instant. Returns false when it was over before."""
        child, instant = self.start(), self.draw.uniform(0.02, LATEST_S)
        try:
            child.wait(instant)
            child.communicate()
            return False
        except subprocess.TimeoutExpired:
            pass
        child.send_signal(kind)
        try:
            child.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.fault(f"still running a minute after {kind.name} at {instant:.2f} s")
            child.kill()
            child.communicate()
        if kind == signal.SIGKILL:
            self.restore()
        for difference in differences(self.before, self.state):
            self.fault(f"after {kind.name} at {instant:.2f} s {difference}")
        now = slices(self.out)
        if not now.startswith(self.kept):
            self.fault(f"after {kind.name} at {instant:.2f} s a row is lost")
        self.kept, self.ended = now, self.ended + 1
        return True

    def carry_out(self):
        """Carries the experiment out to its end: it must have a verdict, and all rows of its table."""
        child = self.start()
        text, said = child.communicate()
        if child.returncode not in (0, 1):
            return self.fault(f"it ends with {child.returncode}: {said.strip()[-300:]}")
        verdict = json.loads(text)
        if not slices(self.out).startswith(self.kept):
            self.fault("the resumed experiment lost rows")
        for difference in differences(self.before, self.state):
            self.fault(f"at the end {difference}")
        if verdict["verdict"] not in ("supported", "refuted", "undecided"):
            self.fault(f"no verdict: {verdict['verdict']}")
        return print(f"{self.name}: ended {self.ended} times, then {verdict['verdict']} over {verdict['blocks']} blocks", flush=True)


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("binary")
    ask.add_argument("names", nargs="*", default=EXPERIMENTS)
    ask.add_argument("--kills", type=int, default=60)
    ask.add_argument("--seed", type=int, default=int(time.time()))
    options = ask.parse_intermixed_args()
    draw, names = random.Random(options.seed), options.names
    faults, ended = 0, 0
    # A test that is ended takes its folder away like one that is interrupted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mydyno-kills-") as top:
        for name in names:
            course = Course(os.path.abspath(options.binary), name, Path(top), draw)
            kills = options.kills // len(names)
            try:
                # One that was over before its instant is begun anew: each experiment is ended as often as was asked for.
                while course.ended < kills and course.begun <= kills:
                    if not course.end_once([signal.SIGKILL, signal.SIGTERM, signal.SIGINT][course.ended % 3]):
                        course.begin()
                if course.ended < kills:
                    course.fault(f"it was over before it could be ended: {course.ended} of {kills} times")
                course.carry_out()
            finally:
                course.restore()
            faults, ended = faults + len(course.faults), ended + course.ended
            time.sleep(0.1)
    print(f"{ended} times ended, {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
