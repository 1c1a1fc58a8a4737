#!/usr/bin/env python3
"""Servers that mean harm or are broken, before every verb of mydyno that has a target.

rogue.py BINARY UPSTREAM_PORT USER PASSWORD_FILE [--fast] [--jobs N] [--only TEXT] [--verb VERB]…

UPSTREAM_PORT is a real server's on 127.0.0.1. Each mode is a server of its own: it greets wrongly, authenticates
wrongly, or passes packets between the program and the real server until a phase begins, and then answers wrongly. Each
run must end within its limits, under 100 MB of memory, with status 3 (1 for a load that ran), without a panic, a file,
a control character on the terminal, or a password that the server can read. Written from the protocol's documentation.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

from modes import ANSWERS, AUTHENTICATIONS, GREETINGS, PHASES, Rogue

SECRET = "correct-horse-battery"
CONNECT, READ = 2, 3          # seconds given to the program
LIMIT_S, LIMIT_KB = 30, 100_000
# The drop-ins take no limit of a statement from the command line: theirs is a minute. An experiment waits in each slice of a block.
LIMITS_S = {"sysbench": 90, "sysbench prepare": 90, "slap": 90, "prove": 60}
# sysbench prints the statement that failed, as a whole.
TEXT, DROP_IN_TEXT = 20_000, 200_000
NOT_OK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
POINT_SELECT = ("bench", "oltp_point_select")
LOAD = ("--tables", "1", "--table-size", "500")
# A variable that the load does not read, swapped while the server runs.
EXPERIMENT = """name = "rogue"
question = "Does a variable that the load does not read change it?"
why = "Connections that fail are counted, and this load has none that fail."
since = "0.1.0"
baseline.levers = []
treatment.levers = ["variable.max_connect_errors=777"]
load = {workload = "oltp_point_select", connections = 1, options = {tables = 1, table-size = 100}}
response = [{name = "transactions_per_s", direction = "differs", delta = "50%"}]
execution = {mode = "in_place", why = "The variable takes effect while the server runs."}
quick = {budget = "10s", slice = "200ms", settle = "50ms", warmup = "200ms"}
full = {budget = "10s", slice = "200ms", settle = "50ms", warmup = "200ms"}
"""
# The words of a verb, and the phases in which the server may go wrong for it.
VERBS = {
    "bench": (POINT_SELECT, ("control", "prepare", "load")),
    "prepare": ((*POINT_SELECT, "prepare"), ("control", "setting up", "prepare")),
    "run": ((*POINT_SELECT, "run"), ("control", "load")),
    "check": ((*POINT_SELECT, "check"), ("control", "check")),
    "cleanup": ((*POINT_SELECT, "cleanup"), ("control", "setting up")),
    "audit": (("audit",), ("control", "audit")),
    "watch": (("watch", "--plain", "--count", "2"), ("control", "setting up", "audit")),
    "checkup": (("checkup", "--plan"), ("control", "audit")),
    "tpcc-lint": (("tpcc-lint", "--schema", "rogue_tpcc"), ("control", "setting up", "check")),
    "prove": (("prove", "--on-server", "--allow-change"), ("control", "prepare", "load")),
    "sysbench": (("sysbench", "oltp_point_select"), ("control", "load")),
    "sysbench prepare": (("sysbench", "oltp_point_select"), ("control", "prepare")),
    "slap": (("slap", "-a", "-c", "2", "--number-of-queries", "200"), ("control", "prepare")),
}
DROP_INS = ("sysbench", "sysbench prepare", "slap")
# A script that reads no rows finds nothing wrong with these.
FINE_FOR_DROP_INS = ("drip", "drip of an OK packet", "two answers to one command")


def fill(args, home, schema, workload=POINT_SELECT[1], options=LOAD):
    """Makes the tables that a verb needs, on the real server."""
    command = [args.binary, "bench", workload, "prepare", *target(args.upstream, args.user, args.password_file), "--schema", schema,
               *options, "--allow-load", "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "MYDYNO_STATE": os.path.join(home, "state")})


def target(port, user, password_file):
    """The options that name a server."""
    return ["-h", "127.0.0.1", "-P", str(port), "--no-defaults", "--connect-timeout", f"{CONNECT}s", "--read-timeout", f"{READ}s",
            "--ssl-mode", "disabled", "-u", user, "--password-file", password_file]


def command_of(case, args, rogue, schema, out):
    """The command line of a case."""
    verb, phase = case[:2]
    words = [args.binary, *VERBS[verb][0]]
    authenticating = phase in ("greeting", "authentication")
    user, password_file = ("rogue", args.own_password) if authenticating else (args.user, args.password_file)
    if verb in DROP_INS:
        with open(password_file, encoding="utf-8") as file:
            password = file.read().strip()
        if verb == "slap":
            return [*words, "--no-defaults", "-h", "127.0.0.1", "-P", str(rogue.port), "-u", user, f"-p{password}",
                    "--create-schema", schema, "--allow-drop-schema"]
        return [*words, "--tables=1", "--table-size=500", "--threads=2", "--time=2", "--mysql-host=127.0.0.1", f"--mysql-port={rogue.port}",
                f"--mysql-user={user}", f"--mysql-password={password}", f"--mysql-db={schema}",
                "prepare" if verb == "sysbench prepare" else "run"]
    words += [args.experiment] if verb == "prove" else []
    words += target(rogue.port, user, password_file)
    if verb == "prove":
        words += ["--schema", schema, "--allow-load", "--out", out]
    elif words[1] == "bench":
        words += ["--schema", schema, *LOAD, "--connections", "2", "--time", "2s", "--warmup", "0s", "--allow-load", "--no-observe",
                  "--prepare-threads", "1"]
        words += ["--out", out] if verb in ("bench", "run") else []
    return words


def peak_of(pid):
    """The most memory that the process had since it began to run the program, in kB."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


def statuses(verb, phase, mode, recorded):
    """What a command may end with: 3, or 1 for a load that ran; a drop-in's is 1, and 2 where its threads do not get ready. Where queries
    had answers before the server went wrong, an audit may judge those (0; 1 would need --fail-on) and a check-up plans with them; a watch
    goes on until its end, because a server may come back."""
    if verb in DROP_INS:
        return (0, 1, 2) if mode in FINE_FOR_DROP_INS else (1, 2)
    if verb in ("audit", "checkup"):
        return (0, 3) if phase == "audit" else (3,)
    if verb == "watch":
        return (0, 3) if phase not in ("greeting", "authentication") else (3,)
    return (1, 3) if recorded else (3,)


def run(case, args, home):
    verb, phase, mode, play = case
    rogue = Rogue(phase, play, args.upstream)
    work = tempfile.mkdtemp(dir=home)
    state = os.path.join(work, "state")
    out = os.path.join(work, "out")
    empty = os.path.join(work, "cwd")
    os.mkdir(empty)
    schema = {"check": "rogue_kept", "sysbench": "rogue_kept", "sysbench prepare": "rogue_other"}.get(verb, f"rogue_{rogue.port}")
    if verb == "run" and phase == "load":
        # Two loads on one database wait for each other.
        fill(args, home, schema)
    command = command_of(case, args, rogue, schema, out)
    limit_s = LIMITS_S.get(verb, LIMIT_S)
    environment = {"PATH": os.environ["PATH"], "MYDYNO_STATE": state, "MYDYNO_CACHE": os.path.join(home, "cache"), "HOME": empty}
    start = time.time()
    peak_kb = 0
    with open(os.path.join(work, "said"), "w+b") as said:
        child = subprocess.Popen(command, cwd=empty, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, env=environment)
        while child.poll() is None:
            peak_kb = max(peak_kb, peak_of(child.pid))
            if time.time() - start > limit_s:
                child.kill()
            time.sleep(0.02)
        said.seek(0)
        text = said.read().decode("utf-8", "surrogateescape")
    took = time.time() - start
    rogue.end()
    wrong = []
    status = child.returncode
    if took >= limit_s:
        wrong.append(f"did not end within {limit_s} s")
    elif rogue.reached and status not in statuses(verb, phase, mode, os.path.exists(out)):
        wrong.append(f"status {status}")
    if peak_kb > LIMIT_KB:
        wrong.append(f"{peak_kb} kB")
    if "panicked" in text:
        wrong.append("a panic")
    if found := NOT_OK.search(text):
        wrong.append(f"{found.group()!r} on the terminal")
    if len(text) > (DROP_IN_TEXT if verb in DROP_INS else TEXT):
        wrong.append(f"{len(text)} characters of text")
    if any(SECRET.encode() in data for data in rogue.received) or SECRET in text:
        wrong.append("the password")
    if files := [name for _, _, names in os.walk(empty) for name in names]:
        wrong.append(f"files: {files}")
    return case, rogue.reached, status, took, peak_kb, wrong, text


def cases(args):
    for verb in VERBS:
        if args.verb and verb not in args.verb:
            continue
        for mode, play in GREETINGS.items():
            yield verb, "greeting", mode, play
        for mode, play in AUTHENTICATIONS.items():
            yield verb, "authentication", mode, play
        for phase in VERBS[verb][1]:
            for mode, play in ANSWERS.items():
                # As the answer to a statement under load it is a valid OK packet.
                if (phase, mode) != ("load", "65,535 parameters"):
                    yield verb, phase, mode, play


# A few of each phase, none of which waits for a limit of its own for long.
FAST = {"close", "noise", "silence", "an error of 10 MB", "an error that steers terminals", "the password in clear", "rows of a megabyte without end", "a row of 4 GB"}


def run_to_phase(case, args, home):
    """Runs a case. On a machine with other work an honest answer before its phase may be later than the read timeout: such a run tells
    nothing of the phase, and is repeated up to twice."""
    for _ in range(3):
        result = run(case, args, home)
        reached, wrong = result[1], result[5]
        if reached or wrong:
            break
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("upstream", type=int)
    parser.add_argument("user")
    parser.add_argument("password_file")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--only", default="")
    parser.add_argument("--verb", action="append", choices=VERBS)
    args = parser.parse_args()
    args.binary, args.password_file = os.path.abspath(args.binary), os.path.abspath(args.password_file)
    wanted = [c for c in cases(args) if args.only in " / ".join(c[:3]) and (not args.fast or (c[2] in FAST and c[0] in ("bench", "check", "audit")))]
    with tempfile.TemporaryDirectory(prefix="rogue") as home:
        args.own_password = os.path.join(home, "password")
        with open(os.open(args.own_password, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(SECRET + "\n")
        args.experiment = os.path.join(home, "rogue.toml")
        with open(args.experiment, "w", encoding="utf-8") as file:
            file.write(EXPERIMENT)
        fill(args, home, "rogue_kept")
        if any(case[0] == "sysbench prepare" for case in wanted):
            fill(args, home, "rogue_other", "hot_row", ())
        if any(case[0] == "tpcc-lint" for case in wanted):
            fill(args, home, "rogue_tpcc", "tpcc", ("--warehouses", "1"))
        failed, missed, worst_s, worst_kb = 0, 0, 0.0, 0
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for case, reached, status, took, kb, wrong, text in pool.map(lambda c: run_to_phase(c, args, home), wanted):
                worst_s, worst_kb = max(worst_s, took), max(worst_kb, kb)
                missed += not reached
                if wrong or not reached:
                    failed += bool(wrong)
                    what = "; ".join(wrong) if wrong else "its phase was not reached"
                    print(f"{' / '.join(case[:3])}: {what} ({took:.1f} s, {kb} kB, status {status})\n    {ascii(text[-400:])}", flush=True)
        modes = len({c[1:3] for c in wanted})
        print(f"{len(wanted)} runs of {modes} modes: {failed} failed, {missed} did not reach their phase; at most {worst_s:.1f} s and {worst_kb} kB")
        return 1 if failed or missed else 0


if __name__ == "__main__":
    sys.exit(main())
