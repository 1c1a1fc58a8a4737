"""Hostile values and damage: documents from their schemas, mutations of JSON and bytes, zstd bombs, things that are no regular files."""
import base64, json, os, re, socket, struct, subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMAS = os.path.join(ROOT, "docs/reference/schemas")

NUMBERS = [0, -0.0, 1, -1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64 - 1, 2**64, -2**63, -2**63 - 1, 1e15, 1e18, 1e300, 1e308,
           -1e308, 5e-324, 0.1, 1e-9, 3_000_000_000, 10**30]
TEXTS = ["", " ", "x", "\x00", "a\x00b", "\x1b[2J\x1b[31mred", "\u202egnp.exe", "<script>alert(1)</script>", "a\nb\rc", "é" * 100,
         "\ufeffbom", "\ud7ff", "\U0010ffff", "%s%n", "../../etc/passwd", "'; DROP TABLE x; --", "A" * 70_000, "`" * 500, "{" * 300, "\u2066x\u2069",
         "-1", "NaN", "1e999", "mydyno.plan/999", "mydyno.run/1", "2026-13-45T99:99:99Z"]


class Raw:
    """A token that json.dumps would not write."""

    def __init__(self, text):
        self.text = text


def load_schema(name):
    with open(os.path.join(SCHEMAS, name + ".schema.json")) as f:
        return json.load(f)


def sample(schema, root, rng, depth=0):
    """A document that fits the schema, with bounded size."""
    if schema is True or schema == {}:
        return rng.choice([None, True, 1, 2.5, "text", [1, 2], {"a": 1}])
    if "$ref" in schema:
        whole = dict(root["$defs"][schema["$ref"].split("/")[-1]])
        rest = {k: v for k, v in schema.items() if k != "$ref"}
        value = sample(whole, root, rng, depth + 1)
        if isinstance(value, dict) and "properties" in rest:
            value.update(sample({"type": "object", "properties": rest["properties"], "required": rest.get("required", [])}, root, rng, depth + 1))
        return value
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    for many in ("oneOf", "anyOf"):
        if many in schema:
            value = sample(rng.choice(schema[many]), root, rng, depth + 1)
            if isinstance(value, dict) and "properties" in schema:
                rest = {k: v for k, v in schema.items() if k != many}
                value.update(sample(rest, root, rng, depth + 1))
            return value
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = rng.choice(kind)
    if kind == "null":
        return None
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "integer":
        return rng.choice([0, 1, 2, 3, 7, 16, 100, 12345])
    if kind == "number":
        return rng.choice([0.0, 0.5, 1.0, 3.25, 60.0, 1234.5])
    if kind == "string":
        return rng.choice(["", "x", "oltp_read_write", "1213", "127.0.0.1", "5 ms", "text"])
    if kind == "array":
        return [sample(schema.get("items", True), root, rng, depth + 1) for _ in range(rng.choice([0, 1, 1, 2, 3]) if depth < 12 else 0)]
    if kind == "object" or "properties" in schema:
        out = {}
        for key, part in schema.get("properties", {}).items():
            if key in schema.get("required", []) or (depth < 12 and rng.random() < 0.6):
                out[key] = sample(part, root, rng, depth + 1)
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            for _ in range(rng.choice([0, 1, 3])):
                out[rng.choice(["a", "transaction", "host.cpu.count", "server.version", "1213", "table-size"])] = sample(extra, root, rng, depth + 1)
        return out
    return None


def dumps(value):
    """JSON text; knows Raw tokens and keys that occur twice (a list of pairs in a Pairs)."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Pairs):
        return "{" + ",".join(json.dumps(k) + ":" + dumps(v) for k, v in value.pairs) + "}"
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(k) + ":" + dumps(v) for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dumps(v) for v in value) + "]"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "null"
    return json.dumps(value)


class Pairs:
    def __init__(self, pairs):
        self.pairs = pairs


def paths(value, here=()):
    """Every place of a document, outermost first."""
    yield here
    if isinstance(value, dict):
        for k, v in value.items():
            yield from paths(v, here + (k,))
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from paths(v, here + (i,))


def at(value, path):
    for p in path:
        value = value[p]
    return value


def put(value, path, new):
    if not path:
        return new
    at(value, path[:-1])[path[-1]] = new
    return value


def hdr(counts, rng):
    """HdrHistogram V2, not compressed, in base64, as hdrhistogram.org describes it; `counts` are zigzag LEB128 numbers."""
    body = b""
    for n in counts:
        z = ((n << 1) ^ (n >> 63)) & (2**64 - 1)
        for _ in range(8):
            if z < 0x80:
                break
            body += bytes([z & 0x7F | 0x80])
            z >>= 7
        body += bytes([z & 0xFF])
    digits = rng.choice([3, 3, 3, 0, 5, 6, -1, 2**31 - 1])
    low = rng.choice([1, 1, 0, -1, 2**62])
    high = rng.choice([3_600_000_000_000, 2**63 - 1, 0, 1, -5])
    length = rng.choice([len(body), len(body), 0, -1, 2**31 - 1, len(body) + 7])
    return base64.b64encode(struct.pack(">iiiiqqd", rng.choice([0x1C849313, 0x1C849313, 0x1C849304, 0]), length, rng.choice([0, 0, 5, -5]), digits, low, high,
                                        rng.choice([1.0, 1.0, 0.0, float("nan"), 1e308])) + body).decode()


def hostile_value(old, rng):
    roll = rng.randrange(14)
    if roll == 0:
        return rng.choice(NUMBERS)
    if roll == 1:
        return rng.choice(TEXTS)
    if roll == 2:
        return Raw(rng.choice(["NaN", "Infinity", "-Infinity", "1e999", "-", "01", "0x10", "1_000", "nul", "tru", "'a'", "\"\\ud800\"", "\"\\x\"", "1" * 5000, "0." + "0" * 9000 + "1"]))
    if roll == 3:
        n = rng.choice([60, 127, 128, 200, 5000, 100_000])
        return Raw("[" * n + "]" * n)
    if roll == 4:
        n = rng.choice([60, 200, 20_000])
        return Raw('{"a":' * n + "1" + "}" * n)
    if roll == 5:
        return Raw('"' + "A" * rng.choice([70_000, 1_100_000, 9_000_000]) + '"')
    if roll == 6:
        return None
    if roll == 7:
        return rng.choice([True, False, [], {}, "", 0])
    if roll == 8 and isinstance(old, list) and old:
        return Raw("[" + ",".join([dumps(old[0])] * rng.choice([2, 1000, 30_000])) + "]")
    if roll == 9 and isinstance(old, dict) and old:
        return Raw("{" + ",".join(json.dumps(f"k{i}") + ":1" for i in range(rng.choice([1000, 40_000]))) + "}")
    if roll == 10 and isinstance(old, dict) and old:
        return Pairs(list(old.items()) + [(k, v) for k, v in old.items() for _ in range(rng.choice([1, 3]))])
    if roll == 11 and isinstance(old, (int, float)):
        return -old if old else -1
    if roll == 12 and isinstance(old, (int, float)):
        return Raw(str(rng.choice([10**9, 10**12, 4_000_000_000, 2**64 - 1])))
    if isinstance(old, str):
        return rng.choice(TEXTS)
    if isinstance(old, dict) and "hdr" in old:
        return {**old, "hdr": hdr([rng.choice([1, 5, -3, -2**31, 2**40, 0, -2**62]) for _ in range(rng.choice([1, 40, 3000]))], rng)}
    return rng.choice(NUMBERS)


def mutate_json(value, rng, times=None):
    value = json.loads(json.dumps(value))
    for _ in range(times or rng.choice([1, 1, 1, 2, 5])):
        if isinstance(value, (Raw, Pairs)):
            break
        places = [p for p in paths(value) if not any(isinstance(at(value, p[:i]), (Raw, Pairs)) for i in range(len(p) + 1))]
        place = rng.choice(places)
        if place and rng.random() < 0.2 and isinstance(at(value, place[:-1]), dict):
            holder = at(value, place[:-1])
            if rng.random() < 0.5:
                del holder[place[-1]]
            else:
                holder[rng.choice(TEXTS + ["x" * 9])] = holder.pop(place[-1])
        else:
            value = put(value, place, hostile_value(at(value, place), rng))
    return value


def mutate_bytes(data, rng):
    """One slip of a disk, an editor or an enemy."""
    if not data:
        return b"\x00"
    roll = rng.randrange(15)
    if roll == 0:  # cut at a boundary of the syntax
        cuts = [m.end() for m in re.finditer(rb'[{}\[\]:,"\n=.]', data)] or [len(data) // 2]
        return data[: rng.choice(cuts)]
    if roll == 1:
        return data[: rng.randrange(len(data))]
    i = rng.randrange(len(data))
    j = min(len(data), i + rng.choice([1, 16, 512, 4096]))
    if roll == 2:
        return data[:i] + b"\x00" * (j - i) + data[j:]
    if roll == 3:
        return data[:i] + rng.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x80\xae", b"\x1b]0;x\x07"]) + data[i:]
    if roll == 4:
        return data[:i] + bytes([data[i] ^ (1 << rng.randrange(8))]) + data[i + 1:]
    if roll == 5:
        return data[:i] + data[j:]
    if roll == 6:
        return data[:i] + data[i:j] * rng.choice([2, 50]) + data[j:]
    if roll == 7:
        return b"\x00" * len(data)
    if roll == 8:
        return b"\xef\xbb\xbf" + data
    if roll == 9:
        return data.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n\n", b" "]))
    if roll == 10:
        return data + data
    if roll == 11:
        return data[:i] + b"\n" * rng.choice([10, 200_000]) + data[i:]
    if roll == 12:
        return data[:i] + b" " * rng.choice([1000, 3_000_000]) + data[i:]
    if roll == 13:
        numbers = list(re.finditer(rb"-?\d+(\.\d+)?", data))
        if numbers:
            m = rng.choice(numbers)
            return data[: m.start()] + rng.choice([b"-1", b"99999999999999999999", b"1e308", b"NaN", b"0", b"4000000000", b"-9223372036854775808"]) + data[m.end():]
    return bytes(rng.randrange(256) for _ in range(min(len(data), 3000)))


# zstd frames, RFC 8878

def zstd_raw(data, window_log=17):
    out = b"\x28\xb5\x2f\xfd" + bytes([0x00, (window_log - 10) << 3])
    parts = [data[i: i + 65536] for i in range(0, len(data), 65536)] or [b""]
    for n, part in enumerate(parts):
        out += struct.pack("<I", len(part) << 3 | (n == len(parts) - 1))[:3] + part
    return out


def zstd_bomb(byte, blocks, window_log=17):
    head = b"\x28\xb5\x2f\xfd" + bytes([0x00, (window_log - 10) << 3])
    one = struct.pack("<I", 131072 << 3 | 1 << 1)[:3] + byte
    return head + one * blocks + struct.pack("<I", 1 << 3 | 1 << 1 | 1)[:3] + byte


def unzstd(path):
    return subprocess.run(["zstd", "-dcq", path], capture_output=True).stdout


# things that are no regular files

def odd_file(path, rng):
    """Puts something else where a file belongs."""
    roll = rng.randrange(9)
    if os.path.lexists(path):
        os.remove(path)
    if roll == 0:
        os.symlink("/dev/zero", path)
    elif roll == 1:
        os.mkfifo(path)
    elif roll == 2:
        os.mkdir(path)
    elif roll == 3:
        os.symlink(os.path.basename(path), path)
    elif roll == 4:
        s = socket.socket(socket.AF_UNIX)
        here = os.getcwd()
        os.chdir(os.path.dirname(path))
        s.bind(os.path.basename(path))
        os.chdir(here)
        s.close()
    elif roll == 5:
        with open(path, "wb") as f:
            f.truncate(20 << 30)
    elif roll == 6:
        os.symlink("/dev/urandom", path)
    elif roll == 7:
        os.symlink("/proc/self/mem", path)
    else:
        open(path, "wb").close()
    return ["zero", "fifo", "folder", "loop", "socket", "sparse", "urandom", "mem", "empty"][roll]
