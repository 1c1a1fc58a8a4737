"""Small files of a record that need much memory or time where nothing bounds what they expand to.

Each kind is a function of the record's folder; its name says what there is too much of. The lines are those of the guide: a key
frame has all values, later lines have what changed.
"""
import json, os, subprocess, threading


def compressed(lines):
    """A zstd stream of lines, as small as the tool makes it."""
    tool = subprocess.Popen(["zstd", "-q", "-c", "-3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out = []
    reader = threading.Thread(target=lambda: out.append(tool.stdout.read()))
    reader.start()
    with tool.stdin as stdin:
        for line in lines:
            stdin.write(line)
    reader.join()
    tool.wait()
    return out[0]


def observed(folder, lines):
    with open(os.path.join(folder, "observe.jsonl.zst"), "wb") as f:
        f.write(compressed(lines))


def line(at_s, values, key=True, rest=""):
    body = ",".join(f'"{name}":{value}' for name, value in values)
    return (f'{{"at_s":{at_s},"took_s":0,' + ('"key":true,' if key else "") + rest + f'"values":{{{body}}}}}\n').encode()


def metrics_of_one_sample(folder):
    """Each sample has names that no other has."""
    observed(folder, (line(n * 0.01, ((f"host.x{n}_{i}", 1) for i in range(2_000))) for n in range(1_500)))


def metrics_of_one_line(folder):
    """A line has as many names as its length allows, and so has each after it."""
    observed(folder, (line(n, ((f"{n:x}.{i:x}", 1) for i in range(330_000))) for n in range(14)))


def small_changes_of_a_large_sample(folder):
    first = line(0, ((f"{i:x}", 1) for i in range(350_000)))
    observed(folder, (line(n * 0.001, [("a", n)], key=False) if n else first for n in range(200_000)))


def samples_without_values(folder):
    one = b'{"at_s":1,"took_s":0,"values":{}}\n'
    observed(folder, (one * 1000 for _ in range(1_950)))


def texts_of_statements(folder):
    """A sample has as many long texts as are read, and each after it has them too."""
    texts = '"texts":{' + ",".join(f'"{i:016x}":"{"x" * 2_000}"' for i in range(200)) + "},"
    observed(folder, (line(n * 0.001, [("a", n)], not n, "" if n else texts) for n in range(500_000)))


def changed_texts_of_statements(folder):
    texts = ('"texts":{' + ",".join(f'"{i:016x}":"{n} {"x" * 1_900}"' for i in range(200)) + "}," for n in range(160))
    observed(folder, (line(n, [("a", n)], not n, all_of) for n, all_of in enumerate(texts)))


def long_names(folder):
    observed(folder, (line(n, [(f"host.{n}" + "n" * 4_000_000, 1)]) for n in range(16)))


def values_that_are_gone(folder):
    """All names are as long as each other and begin alike, and each line takes back those of the line before."""
    names = [f"{'n' * 200}{i:06}" for i in range(8_000)]
    gone = '"gone":[' + ",".join(f'"{name}"' for name in names) + "],"
    lines = (line(n, [(name, n) for name in names] if n % 2 == 0 else [], n == 0, gone if n % 2 else "") for n in range(36))
    observed(folder, lines)


def devices(folder):
    """Figures of thousands of devices, waits and statements, all within the measured windows."""
    def values(n):
        yield "server.status.uptime", n + 10
        yield "server.status.questions", n * 1000
        for i in range(3_000):
            yield f"host.disk.d{i}.write_bytes", n * 4096 + i
            yield f"host.disk.d{i}.busy_s", n * 0.1
            yield f"server.waits.w{i}.time_s", n * 0.1
            yield f"server.digest.{i:016x}@s.time_s", n * 0.1
            yield f"server.digest.{i:016x}@s.statements", n * 10
    observed(folder, (line(n * 0.05, values(n), n % 60 == 0) for n in range(160)))


def rewrite(folder, name, change):
    path = os.path.join(folder, name)
    with open(path) as f:
        document = json.load(f)
    change(document)
    with open(path, "w") as f:
        json.dump(document, f)


def windows(folder):
    with open(os.path.join(folder, "intervals.jsonl")) as f:
        return [json.loads(text) for text in f if '"measure"' in text]


def steps(folder, count, places):
    """A plan of so many steps, each with a window at each of its places."""
    def change(manifest):
        step = manifest["plan"]["steps"][0]
        manifest["plan"]["steps"] = [step] * count
    rewrite(folder, "manifest.json", change)
    window = windows(folder)[0]
    with open(os.path.join(folder, "intervals.jsonl"), "w") as f:
        for start_s, width_s, step in places:
            f.write(json.dumps({**window, "step": step, "start_s": start_s, "width_s": width_s}, separators=(",", ":")) + "\n")


def many_steps(folder):
    steps(folder, 10_000, ((n * 0.001, 0.001, n) for n in range(10_000)))


def steps_without_windows(folder):
    steps(folder, 100_000, ((n, 1, n) for n in range(5)))


def steps_at_one_time(folder):
    """The windows of each step lie between those of all others, so that all samples are in the time of each."""
    count = 400
    steps(folder, count, ((around * 500 + n * 0.001, 0.001, n) for around in range(2) for n in range(count)))
    values = lambda n: [("server.status.uptime", n), *((f"server.status.x{i}", n) for i in range(300))]
    observed(folder, (line(n, values(n), n == 0) for n in range(500)))


def added_steps(folder):
    """Events that add steps to the plan."""
    with open(os.path.join(folder, "manifest.json")) as f:
        plan = json.load(f)["plan"]["steps"]
    with open(os.path.join(folder, "events.jsonl"), "a") as f:
        for n in range(30_000):
            f.write(json.dumps({"at_s": 1.0, "event": "step", "step": len(plan) + n, "plan": plan[0]}) + "\n")


def list_in(name):
    def write(folder):
        """A field of a later version that is a list of numbers."""
        path = os.path.join(folder, name)
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text.rstrip()[:-1] + ',"later":[' + "0," * 7_500_000 + "0]}")
    write.__name__ = f"a_list_in_{name.split('.')[0]}"
    return write


def lists_in_windows(folder):
    with open(os.path.join(folder, "intervals.jsonl")) as f:
        texts = f.read().splitlines()
    with open(os.path.join(folder, "intervals.jsonl"), "w") as f:
        for text in texts:
            f.write(text[:-1] + ',"later":[' + "0," * 2_000_000 + "0]}\n")


def many_operations(folder):
    """A window of thousands of operations, each with its histograms."""
    window = windows(folder)[0]
    one = next(iter(window["operations"].values()))
    with open(os.path.join(folder, "intervals.jsonl"), "w") as f:
        for n in range(20):
            operations = {f"o{n}_{i}": one for i in range(2_000)}
            f.write(json.dumps({**window, "start_s": n, "width_s": 1, "operations": operations}) + "\n")


def operations_of_the_plan(folder):
    def change(manifest):
        manifest["operations"] = [{**manifest["operations"][0], "name": f"o{i}"} for i in range(50_000)]
    rewrite(folder, "manifest.json", change)


def errors_of_each_code(folder):
    window = windows(folder)[0]
    with open(os.path.join(folder, "intervals.jsonl"), "w") as f:
        for n in range(20):
            f.write(json.dumps({**window, "start_s": n, "width_s": 1, "errors": {str(i): 1 for i in range(n * 10_000, n * 10_000 + 10_000)}}) + "\n")
    with open(os.path.join(folder, "events.jsonl"), "a") as f:
        for n in range(50_000):
            f.write(json.dumps({"at_s": 1.0, "event": "error", "step": 0, "code": str(n), "sqlstate": "HY000", "message": "m" * 50, "operation": "o"}) + "\n")


KINDS = [metrics_of_one_sample, metrics_of_one_line, small_changes_of_a_large_sample, samples_without_values, texts_of_statements,
         changed_texts_of_statements, long_names, values_that_are_gone, devices, many_steps, steps_without_windows, steps_at_one_time,
         added_steps, list_in("manifest.json"), list_in("facts.json"), lists_in_windows, many_operations, operations_of_the_plan,
         errors_of_each_code]
