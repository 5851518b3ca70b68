"""Prints the JSON lines of the benchmarks as a table and says which limits are missed. usage: table.py LINES"""

import json
import sys


def judged(line):
    """(name, figure, limit, met): ratios and times have an upper limit, rates a lower one."""
    data = json.loads(line)
    limit_key = next(key for key in data if key.startswith("limit"))
    value_key = next(key for key in data if key not in ("bench", limit_key) and isinstance(data[key], (int, float)))
    value, limit = data[value_key], data[limit_key]
    is_rate = value_key.endswith("per_second")
    return data["bench"], value_key, value, limit, value >= limit if is_rate else value <= limit


rows = [judged(line) for line in open(sys.argv[1], encoding="utf-8") if line.startswith("{")]
for name, key, value, limit, met in rows:
    print(f"{name:<58} {value:>12.4g} {key:<20} limit {limit:<9g} {'met' if met else 'MISSED'}")
sys.exit(0 if rows and all(row[-1] for row in rows) else 4)
