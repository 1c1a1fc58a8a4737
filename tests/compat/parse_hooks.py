"""Reports of hooks: CSV with a header as a table, JSON as an array of objects."""
import csv
import io
import json
import sys

text = sys.stdin.read()
if "{" in text and text.lstrip().find("[\n") >= 0:
    start = text.index("[\n")
    end = text.index("\n]", start) + 2
    reports = json.loads(text[start:end])
    fields = sorted(reports[0])
    good = all(r["tps"] > 0 and abs(sum(r["qps"][k] for k in ("reads", "writes", "other")) - r["qps"]["total"]) < 0.1 for r in reports)
    print("json", len(reports) > 1, fields, good)
else:
    lines = [line for line in text.splitlines() if line.count(",") == 9]
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    good = all(abs(float(r["reads"]) + float(r["writes"]) + float(r["other"]) - float(r["qps"])) < 0.1 for r in rows)
    print("csv", len(rows) > 1, sorted(rows[0]), good)
