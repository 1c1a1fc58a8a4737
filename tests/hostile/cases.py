"""One function for each kind of file: it writes a damaged or hostile one and says how mydyno is called with it."""
import collections, json, os, re, shutil, struct

from damage import load_schema, sample, dumps, hdr, hostile_value, mutate_json, mutate_bytes, zstd_raw, zstd_bomb, odd_file, ROOT
from growth import KINDS

Case = collections.namedtuple("Case", "kind name argv certain env")


def lines_of(path):
    with open(path, "rb") as f:
        return f.read().split(b"\n")[:-1]


def write(path, data):
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))


def undamaged_copy(clean, folder):
    shutil.copytree(clean, folder)
    for name in ("report.html", "report.md", "summary.json"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))


def record_case(folder, clean, rng, n):
    """A damaged copy of a real record."""
    undamaged_copy(clean, folder)
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


def growth_case(folder, clean, rng, n):
    """A copy of a real record with one file that expands to much."""
    kind = KINDS[n % len(KINDS)]
    undamaged_copy(clean, folder)
    kind(folder)
    return Case("growth", kind.__name__, ["report", folder] + rng.choice([[], ["--json"], ["--html"], ["--markdown"]]), False, {})


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
