"""Ways of a server to go wrong, and the server that does: written from the protocol's documentation."""

import itertools
import random
import re
import socket
import struct
import threading
import time


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
