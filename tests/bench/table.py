"""Prints the figures of the benchmarks with their limits and says which are missed. usage: table.py RESULTS.json..."""

import json
import sys

GENERAL = {"limit", "real_time", "cpu_time", "iterations", "repetitions", "repetition_index", "threads", "family_index", "per_family_instance_index"}


def judged(entry):
    """(title, name, value, limit, is met): ratios and times have an upper limit, rates a lower one."""
    name = next(k for k, v in entry.items() if k not in GENERAL and isinstance(v, (int, float)))
    value, limit = entry[name], entry["limit"]
    met = value >= limit if name.endswith("_per_second") else value <= limit
    return entry["name"].removesuffix("/iterations:1"), name, value, limit, met


rows = [judged(entry) for path in sys.argv[1:] for entry in json.load(open(path, encoding="utf-8"))["benchmarks"]]
for title, name, value, limit, met in rows:
    print(f"{title:<62} {value:>10.4g} {name:<24} limit {limit:<8g} {'met' if met else 'MISSED'}")
sys.exit(0 if rows and all(row[-1] for row in rows) else 4)
