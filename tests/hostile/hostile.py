#!/usr/bin/env python3
"""Damaged and hostile files before every verb that reads files of users.

The files follow docs/reference/schemas and the guides, not the parsers. Each case is one file, folder or record, a
command, and whether its damage is certain. A case passes when mydyno ends by itself with status 0 to 3, without a panic,
within --limit-s and --limit-mb, prints no control character, prints a JSON document where it was asked for one with
status 0, and says so (status 1 to 3) where the damage is certain.

    hostile.py --bin target/release/mydyno --record RUN_FOLDER [--count 1600] [--seed 1] [--kind record] [--keep DIR]

Prints a line for each failed case and one at the end: files, largest memory, longest time.
"""
import argparse, base64, collections, json, os, random, re, resource, shutil, signal, socket, struct, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SCHEMAS = os.path.join(ROOT, "docs/reference/schemas")
subprocess._USE_VFORK = False  # a child of vfork begins with the peak memory of its parent

# ---------------------------------------------------------------- documents from their schemas

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


# ---------------------------------------------------------------- zstd frames, RFC 8878

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


# ---------------------------------------------------------------- things that are no regular files

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


# ---------------------------------------------------------------- cases

Case = collections.namedtuple("Case", "kind name argv certain env")


def lines_of(path):
    with open(path, "rb") as f:
        return f.read().split(b"\n")[:-1]


def write(path, data):
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))


def record_case(folder, clean, rng, n):
    """A damaged copy of a real record."""
    shutil.copytree(clean, folder)
    for name in ("report.html", "report.md", "summary.json"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    p = lambda name: os.path.join(folder, name)
    certain, how = False, ""
    roll = n % 12
    jsonl = rng.choice(["intervals.jsonl", "events.jsonl"])
    if roll == 0:
        name = rng.choice(["manifest.json", "facts.json"])
        with open(p(name), "rb") as f:
            data = f.read()
        cut = rng.choice([m.end() for m in re.finditer(rb'[{}\[\]:,"]', data)][:-1])
        write(p(name), data[:cut])
        certain, how = True, f"{name} cut at {cut}"
    elif roll == 1:
        name = rng.choice(["manifest.json", "facts.json", "intervals.jsonl", "events.jsonl", "observe.jsonl.zst"])
        what = odd_file(p(name), rng)
        certain, how = True, f"{name} is a {what}"
    elif roll == 2:
        rows = lines_of(p("intervals.jsonl"))
        i = rng.randrange(len(rows))
        what = rng.choice(["delete", "double", "zero", "tear", "swap", "junk"])
        if what == "delete":
            del rows[i]
        elif what == "double":
            rows.insert(i, rows[i])
        elif what == "zero":
            rows[i] = b"\x00" * len(rows[i])
        elif what == "tear":
            rows[i] = rows[i][: rng.randrange(1, len(rows[i]))]
        elif what == "swap":
            i = rng.randrange(len(rows) - 1)
            rows[i], rows[i + 1] = rows[i + 1], rows[i]
        else:
            rows[i] = b'{"step":'
        write(p("intervals.jsonl"), b"\n".join(rows) + b"\n")
        certain, how = True, f"intervals.jsonl line {i + 1} {what}"
    elif roll == 3:
        rows = lines_of(p("events.jsonl"))
        i = rng.randrange(len(rows))
        what = rng.choice(["zero", "tear", "junk"])
        rows[i] = {"zero": b"\x00" * len(rows[i]), "tear": rows[i][: len(rows[i]) // 2], "junk": b"]"}[what]
        write(p("events.jsonl"), b"\n".join(rows) + b"\n")
        certain, how = True, f"events.jsonl line {i + 1} {what}"
    elif roll == 4:
        rows = lines_of(p(jsonl))
        i = rng.randrange(len(rows))
        rows[i] = dumps(mutate_json(json.loads(rows[i]), rng)).encode("utf-8", "surrogatepass")
        write(p(jsonl), b"\n".join(rows) + b"\n")
        how = f"{jsonl} line {i + 1} mutated"
    elif roll == 5:
        name = rng.choice(["manifest.json", "facts.json"])
        with open(p(name)) as f:
            write(p(name), dumps(mutate_json(json.load(f), rng)))
        how = f"{name} mutated"
    elif roll == 6:
        name = rng.choice(["manifest.json", "facts.json", "intervals.jsonl", "events.jsonl", "observe.jsonl.zst"])
        with open(p(name), "rb") as f:
            data = f.read()
        write(p(name), mutate_bytes(data, rng))
        how = f"{name} bytes"
    elif roll == 7:
        what = rng.choice(["zeros", "newlines", "open", "text", "window", "keys", "lie", "frames"])
        data = {
            "zeros": lambda: zstd_bomb(b"\x00", 60_000),
            "newlines": lambda: zstd_bomb(b"\n", 60_000),
            "open": lambda: zstd_bomb(b"[", 30_000),
            "text": lambda: zstd_bomb(b"A", 90_000),
            "window": lambda: zstd_bomb(b" ", 100, window_log=rng.choice([27, 31, 41])),
            "keys": lambda: zstd_raw(b"".join(b'{"at_s":%d,"took_s":0,"values":{"host.x%d_s":1}}\n' % (i, i) for i in range(60_000))),
            "lie": lambda: b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 2**63) + b"\x01\x00\x00",
            "frames": lambda: zstd_raw(b'{"at_s":1,"took_s":0,"values":{}}\n') * 20_000,
        }[what]()
        write(p("observe.jsonl.zst"), data)
        certain, how = what in ("zeros", "open", "text", "window", "lie"), f"observe.jsonl.zst {what}"
    elif roll == 8:
        schema = load_schema("sample")
        rows = [dumps(mutate_json(sample(schema, schema, rng), rng) if rng.random() < 0.3 else sample(schema, schema, rng)) for _ in range(rng.choice([1, 20, 300]))]
        write(p("observe.jsonl.zst"), zstd_raw("\n".join(rows).encode("utf-8", "surrogatepass") + b"\n"))
        how = "observe.jsonl.zst from its schema"
    elif roll == 9:
        for name in ("interval", "event"):
            schema = load_schema(name)
            rows = [sample(schema, schema, rng) for _ in range(rng.choice([3, 40, 400]))]
            if rng.random() < 0.5:
                rows = [mutate_json(r, rng, 1) if rng.random() < 0.2 else r for r in rows]
            write(p(name + "s.jsonl"), "\n".join(dumps(r) for r in rows) + "\n")
        how = "intervals and events from their schemas"
    elif roll == 10:
        for name in ("manifest", "facts"):
            schema = load_schema(name)
            doc = sample(schema, schema, rng)
            doc["schema"] = {"manifest": "mydyno.manifest/1", "facts": "mydyno.facts/1"}[name]
            write(p(name + ".json"), dumps(doc if rng.random() < 0.5 else mutate_json(doc, rng)))
        how = "manifest and facts from their schemas"
    else:
        rows = [json.loads(r) for r in lines_of(p("intervals.jsonl"))]
        what = rng.choice(["start", "width", "step", "negative", "ops", "many", "counts", "order", "hdr"])
        if what == "start":
            rows[-1]["start_s"] = rng.choice([1e15, 1e9, 1e300, -1e15, 86400.0 * 400])
        elif what == "width":
            rows[len(rows) // 2]["width_s"] = rng.choice([1e15, 0, -1, 1e-300, 1e300])
        elif what == "step":
            rows[-1]["step"] = rng.choice([2**32, 2**63, 999_999_999])
        elif what == "negative":
            for r in rows:
                r["start_s"] = -r["start_s"]
        elif what == "ops":
            some = rows[-1]["operations"]
            one = next(iter(some.values()), {"response": {"count": 0}, "service": {"count": 0}})
            for r in rows:
                r["operations"] = {f"op{i}": one for i in range(3000)}
        elif what == "many":
            rows = rows * 2000
        elif what == "counts":
            for r in rows:
                r["transactions"] = r["queries"] = 2**64 - 1
                r["errors"] = {str(i): 2**63 for i in range(2000)}
        elif what == "order":
            rng.shuffle(rows)
        else:
            for r in rows:
                for o in r["operations"].values():
                    o["response"] = hostile_value({"hdr": ""}, rng) if rng.random() < 0.1 else {**o["response"], "hdr": hdr([1, -5, 2**40], rng)}
        with open(p("intervals.jsonl"), "w") as f:
            for r in rows[:12_000]:
                f.write(dumps(r) + "\n")
        certain, how = what in ("negative", "order", "many", "ops") and what != "ops", f"intervals.jsonl {what}"
    argv = ["report", folder] + rng.choice([[], ["--json"], ["--html"], ["--markdown"]])
    if rng.random() < 0.15:
        argv.insert(rng.choice([1, 2]), clean)
    return Case("record", how, argv, certain, {})


def fact_names():
    with open(os.path.join(ROOT, "docs/reference/facts.md")) as f:
        return sorted(set(re.findall(r"`((?:host|server|block|storage|cpu|memory|schema|process|net)[\w.*-]+)`", f.read())))


def bundle_case(path, names, rng, n):
    schema = load_schema("facts")
    doc = sample(schema, schema, rng)
    doc["schema"] = "mydyno.facts/1"
    statuses = [lambda v: {"value": v, "source": "test", "status": "ok"}, lambda v: {"value": None, "source": "s", "status": "denied", "why": "w" * 9},
                lambda v: {"value": None, "source": "s", "status": "absent", "why": "\x1b[31m"}]
    for name in rng.sample(names, min(len(names), rng.choice([5, 80, 400]))):
        key = name.replace("*", rng.choice(["sda", "x" * 300, "\x1b[1m", "0"]))
        doc["facts"][key] = rng.choice(statuses)(rng.choice([0, 1, -1, 1e308, 2**63, "ON", "", "x" * 70_000, [], {}, ["a"] * 500, None, True, [{"name": "x"}] * 50, "10.11.6-MariaDB", "\u202e"]))
    for key, value in {"server.family": "mysql", "server.version": "8.0.36", "server.version_number": 80036}.items():
        doc["facts"].setdefault(key, {"value": value, "source": "t", "status": "ok"})
    roll, how = n % 7, ""
    if roll == 0:
        how = "is a " + odd_file(path, rng)
    elif roll == 1:
        write(path, mutate_bytes(dumps(doc).encode(), rng))
        how = "bytes"
    elif roll == 2:
        write(path, dumps(mutate_json(doc, rng)))
        how = "mutated"
    elif roll == 3:
        doc["facts"] = {f"block.d{i}.scheduler": {"value": "bfq", "source": "s", "status": "ok"} for i in range(rng.choice([1000, 30_000]))}
        write(path, dumps(doc))
        how = "many members"
    elif roll == 4:
        doc["facts"]["server.variable.x"] = {"value": [[["a"] * 20] * 20] * rng.choice([3, 60]), "source": "s", "status": "ok"}
        doc["facts"]["server.options.set"] = {"value": [{"name": "a" * 50, "value": "1", "file": "/x", "line": i, "group": "mysqld"} for i in range(20_000)], "source": "s", "status": "ok"}
        write(path, dumps(doc))
        how = "large lists"
    elif roll == 5:
        write(path, dumps(doc).encode() + rng.choice([b"", b"}", b"\x00" * 100, b" " * 9_000_000, dumps(doc).encode()]))
        how = "with a tail"
    else:
        write(path, dumps(doc))
        how = "from the schema"
    argv = ["audit", "--from", path] + rng.choice([[], ["--json"], ["--html"], ["--markdown"], ["--sarif"], ["--facts"], ["--all"]])
    if rng.random() < 0.1:
        argv += ["--diff", path]
    return Case("bundle", how, argv, False, {})


OPTIONS = ["innodb_buffer_pool_size", "max_connections", "sql_mode", "loose-foo", "skip-name-resolve", "innodb-flush-log-at-trx-commit", "max_c", "plugin_load_add",
           "query_cache_size", "a" * 300, "server-id", "key_buffer_size", "tmpdir", "log_bin", "=", "\x1b[31m", "\u202e"]


def option_case(path, rng, n):
    roll, how = n % 9, ""
    base = "[mysqld]\n" + "".join(f"{rng.choice(OPTIONS)} = {rng.choice(['1', '0', 'ON', '-1', '99999999999999999999', '1G', '1e9', '8E', 'x' * 5000, '', chr(34) + 'a', '1K # c'])}\n" for _ in range(rng.choice([3, 50, 1000])))
    data = base.encode()
    if roll == 0:
        how = "is a " + odd_file(path, rng)
        data = None
    elif roll == 1:
        data, how = mutate_bytes(data, rng), "bytes"
    elif roll == 2:
        data, how = (f"!include {path}\n" * 300 + base).encode(), "includes itself"
    elif roll == 3:
        folder = path + ".d"
        os.mkdir(folder)
        for i in range(rng.choice([3, 400])):
            write(os.path.join(folder, f"{i}.cnf"), f"[mysqld]\n!includedir {folder}\nmax_connections={i}\n")
        for i in range(3):
            odd_file(os.path.join(folder, f"odd{i}.cnf"), rng)
        data, how = (base + f"!includedir {folder}\n").encode(), "a folder that includes itself"
    elif roll == 4:
        data, how = b"[mysqld]\n" + b"max_connections=1\n" * rng.choice([2600, 260_000]), "one option again and again"
    elif roll == 5:
        data, how = b"[mysqld]\n" + b"".join(b"option_%d=1\n" % i for i in range(rng.choice([2400, 90_000]))), "unknown options"
    elif roll == 6:
        data, how = b"[mysqld]\nsql_mode=" + b"A," * rng.choice([1000, 500_000, 5_000_000]) + b"\n", "a long line"
    elif roll == 7:
        data, how = b"".join(b"[g%d]\n" % i for i in range(100_000)) + data, "many groups"
    else:
        how = "grammar"
    if data is not None:
        write(path, data)
    release = rng.choice(["mysql-8.0", "mysql-9.7", "mariadb-11.8", "mariadb-10.1", "mysql-5.5"])
    return Case("options", how, ["audit", "--config", path, "--for", release] + rng.choice([[], ["--json"], ["--html"]]), False, {})


GENERATORS = ["5", '"text"', "{ constant = 5 }", "{ uniform = [1, 100] }", "{ uniform = [100, 1] }", "{ uniform = [-9223372036854775808, 9223372036854775807] }",
              "{ zipfian = [1, 4000000000000], exponent = 0.99 }", "{ zipfian = [1, 100], exponent = nan }", "{ zipfian = [1, 9], exponent = -1e308 }", '{ uniform = "item" }', '{ uniform = "nothing" }',
              "{ sequence = 1, step = 0 }", "{ sequence = 9223372036854775807, step = 9223372036854775807 }", "{ unique = true }", '{ pattern = "@@-####" }', '{ pattern = "\\\\" }',
              "{ alphanumeric = 20 }", "{ alphanumeric = [200, 20] }", "{ alphanumeric = 4000000000 }", "{ alphanumeric = -1 }", '{ choice = ["a", "b"], weights = [3, 1] }',
              "{ choice = [] }", '{ choice = ["a"], weights = [0] }', '{ choice = ["a"], weights = [18446744073709551615] }', "{ guid = true }", "{ guid = 7 }", "{ }", "{ what = 1 }", "[[[[]]]]"]


def mix_text(rng):
    out = ['about = "x"\n']
    for t in range(rng.choice([1, 1, 3, 60])):
        name = "item" if t == 0 else f"t{t}"
        out.append(f"[tables.{name}]\ncreate = \"CREATE TABLE {name} (id INT PRIMARY KEY, a TEXT)\"\nrows = {rng.choice(['10', '0', '-1', '9223372036854775807', '1e9', '4000000000', '1_000'])}\n[tables.{name}.columns]\n")
        for c in range(rng.choice([1, 2, 300])):
            out.append(f"c{c} = {rng.choice(GENERATORS)}\n")
    for t in range(rng.choice([1, 3, 200])):
        out.append(f"[transactions.x{t}]\nweight = {rng.choice(['1', '0', '-1', '1e308', 'nan', '4000000000'])}\n")
        out.append("values = { " + ", ".join(f"v{i} = {rng.choice(GENERATORS)}" for i in range(rng.choice([0, 2, 40]))) + " }\n")
        out.append("statements = [" + ", ".join("{ sql = \"SELECT a FROM item WHERE id = ?\", params = [" + rng.choice(GENERATORS) + "], repeat = " + rng.choice(["1", "0", "-5", "4000000000"]) + " }" for _ in range(rng.choice([1, 5, 100]))) + "]\n")
    return "".join(out)


def toml_case(kind, path, seeds, rng, n):
    """A damaged copy of a shipped claim, experiment or mix, or one that no one would write."""
    seed = rng.choice(seeds)
    with open(seed, "rb") as f:
        data = f.read()
    roll, how = n % 9, os.path.basename(seed)
    if roll == 0:
        how += " is a " + odd_file(path, rng)
        data = None
    elif roll in (1, 2, 3):
        for _ in range(rng.choice([1, 1, 3])):
            data = mutate_bytes(data, rng)
        how += " bytes"
    elif roll == 4:
        lines = data.split(b"\n")
        for _ in range(rng.choice([1, 3])):
            i = rng.randrange(len(lines))
            lines[i: i + 1] = rng.choice([[], [lines[i]] * 2, [lines[i]] * 5000, [lines[rng.randrange(len(lines))]], [b"x = " + b"[" * 5000]])
        data, how = b"\n".join(lines), how + " lines"
    elif roll == 5:
        data, how = data + b"".join(b'k%d = "v"\n' % i for i in range(rng.choice([25_000, 60_000]))), how + " unknown keys"
    elif roll == 6:
        deep = rng.choice([b"a." * 3000 + b"b = 1\n", b"x = " + b"[" * 20_000 + b"]" * 20_000 + b"\n", b"x = " + b"{a=" * 20_000 + b"1" + b"}" * 20_000 + b"\n",
                           b"".join(b"[" + b".".join([b"t"] * i) + b"]\n" for i in range(1, 400)), b"[[a]]\n" * 100_000])
        data, how = rng.choice([deep + data, data + b"\n" + deep]), how + " deep"
    elif roll == 7:
        if kind == "mix":
            data, how = mix_text(rng).encode(), "from the guide"
        elif kind == "claim":
            chain = b"".join(b'n%d = "$n%d + $n%d"\n' % (i, i - 1, i - 1) for i in range(1, rng.choice([17, 100, 12_000])))
            head = data.split(b"[let]")[0]
            data, how = head + b'\n[let]\nn0 = "host.cpu.count"\n' + chain, how + " doubling names"
        else:
            data, how = re.sub(rb'"(\d+)(\w+)"', lambda m: rng.choice([b'"99999999999h"', b'"-1s"', b'"0s"', b'"1e308s"', b'"nans"', m[0]]), data), how + " times"
    else:
        words = [b"(" * 5000 + b"1" + b")" * 5000, b"not " * 5000 + b"on(@@log_bin)", b"1 + " * 3000 + b"1", b"any(a in block.*: " * 300 + b"true" + b")" * 300, b"1 / 0 == 1", b"99999999999999999999999 TiB > 1",
                 b"max(" + b"1," * 5000 + b"1) == 1", b"'" + b"x" * 100_000 + b"' == ''", b"round_up(1, 0) == 1", b"{" * 500, b"\\u202e"]
        data, how = re.sub(rb'^(check|applies_when|question|sql|create|why) = .*$', lambda m: m[1] + b' = "' + rng.choice(words) + b'"', data, flags=re.M), how + " expressions"
    if data is not None:
        write(path, data)
    folder = os.path.dirname(path)
    argv = {"claim": ["claims", "--check", folder], "experiment": rng.choice([["experiments", "--check", folder], ["prove", path, "--plan", "--json"]]),
            "mix": ["bench", path, "-h", "127.0.0.1", "-P", "1", "-u", "x", "--connect-timeout", "1s"]}[kind]
    return Case(kind, how, argv, False, {})


def design_case(folder, rng, n):
    os.mkdir(folder)
    for name, suffix in (("design", ".json"), ("slice", "s.jsonl"), ("verdict", ".json")):
        schema = load_schema(name)
        docs = [mutate_json(sample(schema, schema, rng), rng) if rng.random() < 0.5 else sample(schema, schema, rng) for _ in range(1 if suffix == ".json" else 30)]
        data = "\n".join(dumps(d) for d in docs).encode("utf-8", "surrogatepass") + b"\n"
        path = os.path.join(folder, name + suffix)
        write(path, mutate_bytes(data, rng) if rng.random() < 0.3 else data)
        if rng.random() < 0.15:
            odd_file(path, rng)
    argv = rng.choice([["prove", "--resume", folder], ["report", folder], ["report", folder, "--json"]])
    return Case("design", "from the schemas", argv, False, {})


def state_case(folder, rng, n):
    """A state folder: the journal of changes, the list of verdicts."""
    os.makedirs(os.path.join(folder, "runs"))
    schema = load_schema("proved")
    rows = [dumps(mutate_json(sample(schema, schema, rng), rng) if rng.random() < 0.4 else sample(schema, schema, rng)) for _ in range(rng.choice([1, 30, 2000]))]
    path = os.path.join(folder, "runs", "verdicts.jsonl")
    data = "\n".join(rows).encode("utf-8", "surrogatepass") + b"\n"
    write(path, mutate_bytes(data, rng) if rng.random() < 0.4 else data)
    if rng.random() < 0.2:
        odd_file(path, rng)
    return Case("state", "verdicts", ["verdicts"] + rng.choice([[], ["--json"]]), False, {"MYDYNO_STATE": folder})


# ---------------------------------------------------------------- running

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
    order = ["record"] * 5 + ["bundle", "bundle", "options", "options", "claim", "claim", "experiment", "experiment", "mix", "mix", "design", "state"]
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
