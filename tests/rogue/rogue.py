#!/usr/bin/env python3
"""Servers that mean harm or are broken, before every verb of mydyno that has a target.

rogue.py BINARY UPSTREAM_PORT USER PASSWORD_FILE [--fast] [--jobs N] [--only TEXT]

UPSTREAM_PORT is a real server's on 127.0.0.1. Each mode is a server of its own: it greets wrongly, authenticates
wrongly, or passes packets between the program and the real server until a phase begins, and then answers wrongly. Each
run must end within its limits, under 100 MB of memory, with status 3 (1 for a load that ran), without a panic, a file,
a control character on the terminal, or a password that the server can read. Written from the protocol's documentation.
"""
import argparse
import concurrent.futures
import itertools
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

SECRET = "correct-horse-battery"
CONNECT, READ = 2, 3          # seconds given to the program
LIMIT_S, LIMIT_KB = 30, 100_000
NOT_OK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def lenenc(data):
    n = len(data)
    return (bytes([n]) if n < 251 else b"\xfc" + struct.pack("<H", n) if n < 65536 else b"\xfd" + struct.pack("<I", n)[:3]) + data


def packet(sequence, payload):
    return struct.pack("<I", len(payload))[:3] + bytes([sequence & 255]) + payload


def error(sequence, text, code=1105):
    return packet(sequence, b"\xff" + struct.pack("<H", code) + b"#HY000" + text)


OK = b"\0\0\0\x02\0\0\0"
COLUMN = b"".join(map(lenenc, [b"def", b"", b"t", b"t", b"c", b"c"])) + b"\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0"
HEAD = packet(1, b"\x01") + packet(2, COLUMN)


def greeting(version=b"8.0.36", capabilities=0x01FFF7DF & ~0x800, plugin=b"mysql_native_password", protocol=10):
    low, high = capabilities & 0xFFFF, capabilities >> 16
    return packet(0, bytes([protocol]) + version + b"\0" + struct.pack("<I", 7) + b"abcdefgh\0" + struct.pack("<H", low)
                  + b"\x2d" + struct.pack("<H", 2) + struct.pack("<H", high) + b"\x15" + b"\0" * 10 + b"ijklmnopqrst\0" + plugin + b"\0")


def read_packet(s):
    head = read_exactly(s, 4)
    return head, read_exactly(s, struct.unpack("<I", head[:3] + b"\0")[0])


def read_exactly(s, n):
    out = b""
    while len(out) < n:
        got = s.recv(n - len(out))
        if not got:
            raise ConnectionError
        out += got
    return out


# ---- answers to a command: functions of the socket; they go on until the program leaves or a minute is over ----
def until_left(s, make, pause=0.0):
    end = time.time() + 60
    while time.time() < end:
        s.sendall(make())
        if pause:
            time.sleep(pause)


def silence(s):
    s.settimeout(60)
    while s.recv(65536):
        pass


def close(s):
    s.shutdown(socket.SHUT_RDWR)


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def then_silence(data):
    def play(s):
        s.sendall(data)
        silence(s)
    return play


def then_close(data):
    def play(s):
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        silence(s)
    return play


def counted(payload, first, start=b"", pause=0.0, batch=1):
    def play(s):
        s.sendall(start)
        numbers = itertools.count(first)
        until_left(s, lambda: b"".join(packet(next(numbers), payload) for _ in range(batch)), pause)
    return play


def drip(data, pause=0.2):
    def play(s):
        for byte in itertools.islice(itertools.cycle(data), int(60 / pause)):
            s.sendall(bytes([byte]))
            time.sleep(pause)
    return play


def frames_without_end(s):
    s.sendall(HEAD)
    for number in itertools.count(3):
        s.sendall(b"\xff\xff\xff" + bytes([number & 255]))
        for _ in range(255):
            s.sendall(b"x" * 65793)


def noise(s):
    random.seed(7)
    s.sendall(random.randbytes(200_000))
    silence(s)


def big_error(megabytes):
    body = b"\xff\x51\x04#HY000" + b"E" * (megabytes << 20)
    data = b""
    while True:
        part, body = body[:0xFFFFFF], body[0xFFFFFF:]
        data += packet(1 + len(data) // 0x1000003, part)
        if len(part) < 0xFFFFFF:
            return data


HOSTILE = "\x1b[31mred\x1b]0;title\x07 <script>alert(1)</script> \u202egnp.exe\u2028 | `x` \n\r\n# head".encode() + b"\xed\xa0\x80\xff"
STATE_BLOCK = lenenc(b"") + lenenc(b"\x00" + lenenc(lenenc(b"v") + lenenc(b"x" * 900_000)))
ANSWERS = {
    "silence": silence, "close": close, "reset": reset, "noise": noise,
    "drip of an OK packet": drip(packet(1, OK)),
    "a header and nothing": then_silence(b"\x07\0\0\x01"),
    "half a packet and the end": then_close(b"\x07\0\0\x01\0\0"),
    "a row of 4 GB": then_silence(HEAD + packet(3, b"\xfe" + struct.pack("<Q", 1 << 32) + b"x")),
    "a packet of frames without end": frames_without_end,
    "rows without end": counted(b"\x01x", 3, HEAD, batch=5000),
    "rows of NULL without end": counted(b"\xfb", 3, HEAD, batch=5000),
    "rows of a megabyte without end": counted(lenenc(b"r" * (1 << 20)), 3, HEAD),
    "a slow row now and then": counted(b"\x01x", 3, HEAD, pause=0.3),
    "results without end": counted(b"\0\0\0\x0a\0\0\0", 1, batch=2000),
    "empty packets without end": counted(b"", 1, batch=5000),
    "an error of 31 MiB": then_silence(big_error(31)),
    "an error of 10 MB": then_silence(big_error(10)),
    "an error that steers terminals": then_silence(error(1, HOSTILE)),
    "an error of three bytes": then_silence(packet(1, b"\xff\x01")),
    "an error without text": then_silence(packet(1, b"\xff\0\0")),
    "a request for a local file": then_silence(packet(1, b"\xfb/etc/shadow")),
    "four billion columns": then_silence(packet(1, b"\xfe" + struct.pack("<Q", 1 << 32))),
    "65,535 columns": counted(COLUMN, 2, packet(1, b"\xfc\xff\xff"), batch=2000),
    "large definitions": counted(COLUMN.replace(b"\x01t\x01t", lenenc(b"t" * 60_000) * 2), 2, packet(1, b"\xfc\xff\x0f")),
    "a wrong number": then_silence(packet(9, b"\x01")),
    "a short OK": then_silence(packet(1, b"\0\0")),
    "a large change of state": then_silence(packet(1, b"\0\0\0\x02\x40\0\0" + STATE_BLOCK)),
    "many changes of state": then_silence(packet(1, b"\0\0\0\x02\x40\0\0\0" + lenenc(b"\x02\0" * 400_000))),
    "65,535 parameters": counted(COLUMN, 2, packet(1, b"\0\x01\0\0\0\xff\xff\xff\xff\0\0\0"), batch=2000),
    "a row beyond its packet": then_silence(HEAD + packet(3, b"\xf0abc")),
    "an EOF where rows begin": then_silence(packet(1, b"\xfe\0\0\x02\0")),
    "a web server": then_close(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "two answers to one command": then_silence(packet(1, OK) + packet(2, OK) + packet(1, OK)),
}
GREETINGS = {
    "silence": silence, "close": close, "reset": reset, "noise": noise, "a web server": ANSWERS["a web server"],
    "drip": drip(greeting()), "16 MiB": then_silence(b"\xff\xff\xff\0" + b"\x0a" * 0xFFFFFF),
    "without end": lambda s: until_left(s, lambda: b"\xff" * 65536), "protocol 9": then_silence(greeting(protocol=9)),
    "no capabilities": then_silence(greeting(capabilities=0)), "an empty packet": then_silence(packet(0, b"")),
    "an error that steers terminals": then_close(error(0, HOSTILE)), "an error of 31 MiB": then_silence(big_error(31)),
}


def switch(plugin, data=b"ABCDEFGHIJKLMNOPQRST\0"):
    return packet(2, b"\xfe" + plugin + b"\0" + data)


def asking(*answers):
    def play(s):
        for answer in answers:
            s.sendall(answer)
            read_packet(s)
        silence(s)
    return play


WEAK_KEY = """-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCtfSiAfU2kYCNFFcQFSP4aLd/r
-----END PUBLIC KEY-----
"""
AUTHENTICATIONS = {
    "silence": silence, "close": close, "reset": reset, "noise": noise,
    "drip": drip(packet(2, OK)), "a large packet": then_silence(b"\xff\xff\xff\x02" + b"x" * 0xFFFFFF),
    "switches without end": counted(switch(b"mysql_native_password")[4:], 2), "more data without end": counted(b"\x01\x03", 2),
    "the password in clear": asking(switch(b"mysql_clear_password", b"")),
    "an unknown method that steers terminals": then_silence(switch(HOSTILE)),
    "the password of before 4.1": asking(packet(2, b"\xfe")),
    "a key that is none": asking(switch(b"caching_sha2_password"), packet(4, b"\x01\x04"), packet(6, b"\x01no key")),
    "a broken key": asking(switch(b"sha256_password"), packet(4, b"\x01" + WEAK_KEY.encode())),
    "two OK packets": then_silence(packet(2, OK) + packet(3, OK)), "an error that steers terminals": then_close(error(2, HOSTILE, 1045)),
    "an error of 31 MiB": then_silence(big_error(31)), "costly rounds": asking(switch(b"parsec", b"n" * 32), packet(4, b"P\x1e" + b"s" * 18)),
}
# A phase begins with the first command that its pattern finds.
PHASES = {
    "control": re.compile(rb"."), "setting up": re.compile(rb"\x03(SELECT|SHOW)", re.I | re.S),
    "prepare": re.compile(rb"^(\x03\s*(CREATE|INSERT|ALTER)|\x16INSERT)", re.I | re.S), "load": re.compile(rb"^\x17", re.S),
    "check": re.compile(rb"^\x03.*(COUNT|CHECKSUM|SUM)\(", re.I | re.S), "audit": re.compile(rb"^\x03.*(VARIABLES|STATUS|information_schema)", re.I | re.S),
}
VERBS = {
    "bench": ["bench", "oltp_point_select"], "prepare": ["bench", "oltp_point_select", "prepare"], "run": ["bench", "oltp_point_select", "run"],
    "check": ["bench", "oltp_point_select", "check"], "cleanup": ["bench", "oltp_point_select", "cleanup"], "audit": ["audit"],
}


class Rogue:
    """One listener; `phase` is greeting, authentication or one of PHASES."""

    def __init__(self, phase, play, upstream):
        self.phase, self.play, self.upstream = phase, play, upstream
        self.received, self.reached, self.sockets = [], False, []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.sockets.append(s)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        try:
            if self.phase == "greeting":
                self.reached = True
                self.play(s)
            elif self.phase == "authentication":
                s.sendall(greeting())
                self.received.append(read_packet(s)[1])
                self.reached = True
                self.play(Recording(s, self.received))
            else:
                self.between(s)
        except (OSError, ConnectionError, ValueError):
            pass
        finally:
            try:
                s.close()
            except OSError:
                pass

    def between(self, s):
        up = socket.create_connection(("127.0.0.1", self.upstream))
        self.sockets.append(up)
        pipe = threading.Thread(target=self.pass_back, args=(up, s), daemon=True)
        pipe.start()
        try:
            started = False
            while True:
                head, payload = read_packet(s)
                # The handshake response has number 1; commands have 0.
                started = started or head[3] == 0
                if started and head[3] == 0 and PHASES[self.phase].search(payload):
                    break
                up.sendall(head + payload)
            self.reached = True
            self.quiet = True
            up.shutdown(socket.SHUT_RDWR)
            pipe.join(5)
            self.play(s)
        finally:
            up.close()

    def pass_back(self, up, s):
        try:
            while data := up.recv(65536):
                s.sendall(data)
        except OSError:
            pass

    def end(self):
        for s in [self.listener, *self.sockets]:
            try:
                s.close()
            except OSError:
                pass


class Recording:
    """A socket that keeps what came."""

    def __init__(self, s, kept):
        self.s, self.kept = s, kept

    def recv(self, n):
        data = self.s.recv(n)
        self.kept.append(data)
        return data

    def __getattr__(self, name):
        return getattr(self.s, name)


def fill(args, home, schema):
    """Makes the tables that a verb needs, on the real server."""
    command = [args.binary, *VERBS["prepare"], "-h", "127.0.0.1", "-P", str(args.upstream), "--no-defaults", "-u", args.user, "--password-file",
               args.password_file, "--schema", schema, "--tables", "1", "--table-size", "500", "--allow-load", "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "MYDYNO_STATE": os.path.join(home, "state")})


def peak_of(pid):
    """The most memory that the process had since it began to run the program, in kB."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


def statuses(verb, phase, recorded):
    """What a command may end with: 3, or 1 for a load that ran. Only where queries of an audit had answers before the server
    went wrong may the audit judge those (0); 1 would need --fail-on."""
    if verb == "audit":
        return (0, 3) if phase == "audit" else (3,)
    return (1, 3) if recorded else (3,)


def run(case, args, home):
    verb, phase, mode, play = case
    rogue = Rogue(phase, play, args.upstream)
    authenticating = phase in ("greeting", "authentication")
    work = tempfile.mkdtemp(dir=home)
    state = os.path.join(work, "state")
    out = os.path.join(work, "out")
    empty = os.path.join(work, "cwd")
    os.mkdir(empty)
    schema = "rogue_kept" if verb == "check" else f"rogue_{rogue.port}"
    if verb == "run" and phase == "load":
        # Two loads on one database wait for each other.
        fill(args, home, schema)
    command = [args.binary, *VERBS[verb], "-h", "127.0.0.1", "-P", str(rogue.port), "--no-defaults", "--connect-timeout", f"{CONNECT}s",
               "--read-timeout", f"{READ}s", "--ssl-mode", "disabled", "-u", "rogue" if authenticating else args.user,
               "--password-file", args.own_password if authenticating else args.password_file]
    if verb != "audit":
        command += ["--schema", schema, "--tables", "1", "--table-size", "500", "--connections", "2", "--time", "2s", "--warmup", "0s",
                    "--allow-load", "--no-observe", "--prepare-threads", "1"]
        command += ["--out", out] if verb in ("bench", "run") else []
    environment = {"PATH": os.environ["PATH"], "MYDYNO_STATE": state, "MYDYNO_CACHE": os.path.join(home, "cache"), "HOME": empty}
    start = time.time()
    peak_kb = 0
    with open(os.path.join(work, "said"), "w+b") as said:
        child = subprocess.Popen(command, cwd=empty, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, env=environment)
        while child.poll() is None:
            peak_kb = max(peak_kb, peak_of(child.pid))
            if time.time() - start > LIMIT_S:
                child.kill()
            time.sleep(0.02)
        said.seek(0)
        text = said.read().decode("utf-8", "surrogateescape")
    took = time.time() - start
    rogue.end()
    wrong = []
    status = child.returncode
    if took >= LIMIT_S:
        wrong.append(f"did not end within {LIMIT_S} s")
    elif rogue.reached and status not in statuses(verb, phase, os.path.exists(out)):
        wrong.append(f"status {status}")
    if peak_kb > LIMIT_KB:
        wrong.append(f"{peak_kb} kB")
    if "panicked" in text:
        wrong.append("a panic")
    if found := NOT_OK.search(text):
        wrong.append(f"{found.group()!r} on the terminal")
    if len(text) > 20_000:
        wrong.append(f"{len(text)} characters of text")
    if any(SECRET.encode() in data for data in rogue.received) or SECRET in text:
        wrong.append("the password")
    if files := [name for _, _, names in os.walk(empty) for name in names]:
        wrong.append(f"files: {files}")
    return case, rogue.reached, status, took, peak_kb, wrong, text


def cases(args):
    for verb in VERBS:
        for mode, play in GREETINGS.items():
            yield verb, "greeting", mode, play
        for mode, play in AUTHENTICATIONS.items():
            yield verb, "authentication", mode, play
        phases = {"bench": ["control", "prepare", "load"], "prepare": ["control", "setting up", "prepare"], "run": ["control", "load"],
                  "check": ["control", "check"], "cleanup": ["control", "setting up"], "audit": ["control", "audit"]}[verb]
        for phase in phases:
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
    args = parser.parse_args()
    args.binary, args.password_file = os.path.abspath(args.binary), os.path.abspath(args.password_file)
    wanted = [c for c in cases(args) if args.only in " / ".join(c[:3]) and (not args.fast or (c[2] in FAST and c[0] in ("bench", "check", "audit")))]
    with tempfile.TemporaryDirectory(prefix="rogue") as home:
        args.own_password = os.path.join(home, "password")
        with open(os.open(args.own_password, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(SECRET + "\n")
        fill(args, home, "rogue_kept")
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
