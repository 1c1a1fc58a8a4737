"""The report at the end and the histogram as JSON, in the manner of people's scripts."""
import json
import re
import sys

text = sys.stdin.read()
wanted = {
    "reads": r"read:\s+(\d+)",
    "writes": r"write:\s+(\d+)",
    "other": r"other:\s+(\d+)",
    "queries": r"total:\s+(\d+)",
    "transactions": r"transactions:\s+(\d+)\s+\(([\d.]+) per sec\.\)",
    "qps": r"queries:\s+\d+\s+\(([\d.]+) per sec\.\)",
    "ignored": r"ignored errors:\s+(\d+)\s+\([\d.]+ per sec\.\)",
    "reconnects": r"reconnects:\s+(\d+)\s+\([\d.]+ per sec\.\)",
    "seconds": r"total time:\s+([\d.]+)s",
    "events": r"total number of events:\s+(\d+)",
    "min": r"min:\s+([\d.]+)",
    "avg": r"avg:\s+([\d.]+)",
    "max": r"max:\s+([\d.]+)",
    "p95": r"95th percentile:\s+([\d.]+)",
    "sum": r"sum:\s+([\d.]+)",
    "fair": r"events \(avg/stddev\):\s+([\d.]+)/([\d.]+)",
    "times": r"execution time \(avg/stddev\):\s+([\d.]+)/([\d.]+)",
}
found = {name: re.search(pattern, text) for name, pattern in wanted.items()}
numbers = {name: float(match.group(1)) for name, match in found.items() if match}
rows = re.findall(r"^\s+([\d.]+) \|([* ]{40}) (\d+)$", text, re.MULTILINE)
checks = {
    "all found": len(numbers) == len(wanted),
    "queries add up": numbers["reads"] + numbers["writes"] + numbers["other"] == numbers["queries"],
    "events": numbers["events"] == numbers["transactions"],
    "rate": abs(float(found["transactions"].group(2)) * numbers["seconds"] / numbers["events"] - 1) < 0.2,
    "latencies in order": numbers["min"] <= numbers["avg"] <= numbers["max"],
    "histogram": len(rows) > 2 and sum(int(count) for _, _, count in rows) == numbers["events"],
    "histogram in order": [float(value) for value, _, _ in rows] == sorted(float(value) for value, _, _ in rows),
}
print(json.dumps(checks))
