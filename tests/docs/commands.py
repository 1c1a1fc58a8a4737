#!/usr/bin/env python3
"""Runs the commands of README and the documentation on real servers: tests/docs/commands.py [BINARY [PAGE...]].

Each page is a scene: an empty home and state folder, a private server that stands for the reader's, the files that the page names. Its
commands run in their order. They are the page's words but for a reader's server, whose address is put in place of db1 or a socket, and
for lengths: loads take a second, comparisons and experiments end with their plan. A command that cannot run here is listed with its reason.
"""

import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ENGINES = Path(os.environ.get("MYDYNO_ENGINES", Path.home() / ".cache/mydyno/engines"))
# Beginnings of commands that are not run, and why. The real command line parses them all the same.
LEFT_OUT = [
    ("make", "a target of its own"),
    ("mydyno audit --ssh", "needs an sshd: make test-ssh"),
    ("mydyno host disk", "changes the host: the test disk::"),
    ("mydyno probe", "takes minutes on a disk: the test probe::"),
    ("mydyno demo", "takes a minute: the test bench::"),
    ("mydyno watch --profile", "needs events of the kernel: the test profile::"),
    ("mydyno watch -S /run/mysqld/mysqld.sock --profile", "needs events of the kernel: the test profile::"),
    ("mydyno watch -h 127.0.0.1 -u dba --profile", "needs events of the kernel: the test profile::"),
    ("mydyno server cli try -- --table", "opens a session at a terminal"),
    ("mydyno runs export 1 -o candidate-a", "runs of two hosts: the test runs::"),
    ("mydyno runs import candidate-a", "runs of two hosts: the test runs::"),
    ("mydyno compare kernel-6.1-a", "runs of two kernels: the test bench:: compares four of one"),
    ("mydyno watch --black-box", "runs until it is ended: the test observe::"),
    ("mydyno watch --mark", "needs a black box that runs: the test observe::"),
    ("mydyno watch --budget", "needs events of the kernel: the test observe::"),
    ("mydyno man", "writes to a terminal's pager"),
]
# What shortens a command: the verb, an option, the value that it gets.
SHORT = {"--time": "1s", "--duration": "2s", "--interval": "1s", "--window": "1s", "--commits": "50"}
LOADS = ["--time", "1s", "--warmup", "0s"]
TABLES = ["--tables", "1", "--table-size", "100"]


def lines(page):
    """The commands of a page that stand in blocks, with their line numbers."""
    found, fenced, rest = [], False, enumerate(page.read_text().splitlines(), 1)
    for number, line in rest:
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        text = line.strip()
        if not (fenced or line.startswith("    ")) or not text.startswith(("mydyno ", "make ")):
            continue
        while text.endswith("\\"):
            text = text[:-1].rstrip() + " " + next(rest)[1].strip()
        # Two spaces begin an explanation, outside of quotes.
        quoted = re.match(r"(?:'[^']*'|\"[^\"]*\"|(?!  | #)[^'\"])*", text).group(0)
        found.append((number, re.split(r" [|>] ", quoted)[0].strip()))
    return found


class Scene:
    """A home of its own for the commands of a page."""

    def __init__(self, binary):
        self.folder = Path(tempfile.mkdtemp(prefix="mydyno-docs-"))
        self.work = self.folder / "work"
        self.work.mkdir()
        (self.folder / "bin").mkdir()
        self.environment = {
            **os.environ, "HOME": str(self.folder), "MYDYNO_STATE": str(self.folder / "state"),
            "MYDYNO_CACHE": os.environ.get("MYDYNO_CACHE", str(Path(tempfile.gettempdir()) / "mydyno-docs-cache")), "NO_COLOR": "1",
        }
        self.binary = binary
        self.target, self.kept = None, False
        (self.work / "my.cnf").write_text("[mysqld]\ninnodb_log_file_size = 16M\n")
        shutil.copy(ROOT / "workloads/queue.toml", self.work / "my_mix.toml")
        experiment = (ROOT / "experiments/same-server.toml").read_text()
        (self.work / "my-experiment.toml").write_text(experiment.replace('name = "same-server"', 'name = "my-experiment"', 1))
        (self.work / "own.lua").write_text("function event() db_query('SELECT 1') end\n")
        (self.work / "queries.sql").write_text("SELECT 1; SELECT 2")
        (self.work / "claims").symlink_to(ROOT / "claims")

    def run(self, words, **options):
        return subprocess.run(
            [self.binary, *words], cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, **options,
        )

    def server(self):
        """Options for the server that stands for the reader's; it is made when the first command needs it."""
        if not self.target:
            made = self.run(["server", "up", "db1", "--quiet", "--json"])
            dsn = re.search(r'"dsn": "([^"]+)"', made.stdout)
            self.target = dsn.group(1) if dsn else sys.exit(made.stdout)
            tables = "".join(f"CREATE TABLE shop.{name} (id INT PRIMARY KEY, name VARCHAR(20)); INSERT INTO shop.{name} VALUES (5, 'x');"
                             for name in ("item", "purchase"))
            filled = self.run(["server", "cli", "db1", "-e", f"CREATE DATABASE shop; CREATE DATABASE sbtest; {tables}"])
            if filled.returncode:
                sys.exit(filled.stdout)
        return ["--dsn", self.target]

    def prepare(self, words):
        """What the reader of a page has by now: kept runs with the names that it uses, an earlier bundle."""
        if words[1] in ("runs", "report") and not self.kept and {"run-a", "old", "3", "1", "before"} & set(words[2:]):
            self.kept = True
            for _ in range(4):
                self.run(["bench", "oltp_point_select", *TABLES, *LOADS, "--connections", "1", "--quiet", "--allow-load", *self.server()])
            for number, name in enumerate(["run-a", "run-b", "old"], 2):
                self.run(["runs", "name", str(number), name])
        if words[1:3] == ["server", "up"]:
            self.run(["server", "down", words[3]])
        if words[1:4] == ["server", "data", "remove"]:
            self.down()
        if words[1] == "tpcc-lint":
            self.server()
            self.run(["server", "cli", "db1", "-e", "DROP DATABASE sbtest"])
            self.run(["bench", "tpcc", "prepare", "--warehouses", "1", "--schema", "sbtest", "--allow-load", *self.server()])
        if words[1:4] == ["bench", "my_mix.toml", "check"]:
            self.run(["bench", "my_mix.toml", "prepare", "--allow-load", *self.server()])
        if "june.json" in words:
            shutil.copy(self.work / "today.json", self.work / "june.json")

    def down(self):
        """Ends all private servers of the page."""
        for server in json.loads(self.run(["server", "list", "--json"]).stdout)["servers"]:
            self.run(["server", "down", server["name"]])
        self.target = None

    def close(self):
        self.down()
        self.run(["host", "restore", "--all"])
        shutil.rmtree(self.folder, ignore_errors=True)


def has_user(name):
    """Whether this machine has a user; packages of servers make `mysql`."""
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


def fitted(words, scene):
    """The words for this machine."""
    verb = words[1]
    out, named = [], False
    skip = False
    for word, after in zip(words[1:], words[2:] + [""]):
        if skip:
            skip = False
            continue
        if word in ("-h", "-u", "-S", "-P") and verb not in ("sysbench", "slap"):
            named, skip = True, True
        elif word == "-p" or word == "…":
            named = True
        elif word in SHORT:
            out += [word, SHORT[word]]
            skip = True
        elif word == "server.user=mysql" and not has_user("mysql"):
            out.append("server.user=nobody")
        elif re.fullmatch(r"(/opt|~)/(mariadb|mysql)-[\d.]+", word):
            unpacked = ENGINES / Path(word).name
            out.append(str(unpacked) if unpacked.exists() else "/usr")
        else:
            out.append(word.replace("/etc/mysql/my.cnf", "my.cnf").replace("/var/lib/node_exporter/", "").replace("/var/tmp/", "").replace("~/", f"{scene.folder}/"))
    step = out[2] if len(out) > 2 else ""
    if verb == "bench":
        mix = out[1] in ("sql", "my_mix.toml", "tpcc", "slap") or out[1].endswith(".toml")
        out += [] if mix or "--data" in out or step in ("cleanup",) else [o for o in TABLES if "--table-size" not in out]
        if step not in ("prepare", "check", "cleanup"):
            out += [] if "--time" in out or any(o in out for o in ("--rate-steps",)) else ["--time", "1s"]
            out += ["--warmup", "0s"]
        out = [re.sub(r"^4$", "1", o) if out[i - 1] == "--warehouses" else o for i, o in enumerate(out)]
    if verb in ("compare", "prove", "checkup") and "--plan" not in out:
        out.append("--plan")
    if verb == "audit" and "--config" not in out and "--from" not in out and "--host-only" not in out:
        named = True
    if verb in ("watch", "tpcc-lint") and "--replay" not in out and "--host-only" not in out:
        named = True
    if verb == "watch" and not any(o in out for o in ("--once", "--count", "--duration", "--replay")):
        out.append("--once")
    if verb in ("sysbench", "slap"):
        out = [o for o in out if not o.startswith(("--mysql-", "--host", "--user"))]
        out = [re.sub(r"^--(time|table-size|tables|number-of-queries|iterations)=.*", lambda m: f"--{m[1]}=1", o) for o in out]
        if out[1:2] != ["cpu"]:
            socket = re.search(r"socket=([^&]+)", scene.server()[1]).group(1)
            password = Path(re.search(r"password-file=([^&]+)", scene.target).group(1)).read_text().strip()
            out += [f"--mysql-socket={socket}", "--mysql-user=root", f"--mysql-password={password}"] if verb == "sysbench" else \
                   [f"--socket={socket}", "--user=root", f"--password={password}"]
            # Where sysbench's command stands last, its options go before it.
            if verb == "sysbench" and out[-4] in ("run", "prepare"):
                out.append(out.pop(-4))
        return out
    if named and not any(o.startswith("--sandbox") for o in out) and "--dsn" not in out:
        out += scene.server()
        # This machine's disk may be nearly full.
        out += ["--allow-load"] if verb == "bench" and "--allow-load" not in out else []
    return out


def main():
    binary = str(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/mydyno").resolve())
    only = sys.argv[2:]
    pages = [ROOT / "README.md"] + sorted(p for p in (ROOT / "docs").rglob("*.md") if p.relative_to(ROOT / "docs").parts[0] not in ("reference", "journal"))
    passed = failed = skipped = 0
    for page in pages:
        found = lines(page)
        if not found or only and not any(word in str(page) for word in only):
            continue
        scene = Scene(binary)
        try:
            for number, command in found:
                place = f"{page.relative_to(ROOT)}:{number}"
                why = next((why for beginning, why in LEFT_OUT if command.startswith(beginning)), None)
                if why:
                    skipped += 1
                    print(f"left out  {place}: {command}: {why}")
                    continue
                scene.prepare(shlex.split(command))
                words = fitted(shlex.split(command), scene)
                try:
                    done = scene.run(words)
                    status, said = done.returncode, done.stdout
                except subprocess.TimeoutExpired as late:
                    status, said = "no end", str(late.stdout)
                # A bound that is not kept, or a finding, is an answer too.
                if status == 0 or status == 1 and (
                    words[:2] == ["server", "crash"] or any(o.startswith(("--fail-", "--find-capacity")) for o in words)
                ):
                    passed += 1
                else:
                    failed += 1
                    print(f"FAILED    {place}: {command}\n  mydyno {shlex.join(words)}\n  status {status}: " + "\n  ".join(said.strip().splitlines()[-8:]))
        finally:
            scene.close()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
