#!/bin/bash
# Simulates each file of this folder, or those that are named, and prints its step beside the published one.
# usage: experiments/published/compare.sh [FILE...]     (LOCKSTEP=path of the program, else build/bin/lockstep)
set -euo pipefail
cd "$(dirname "$0")/../.."
lockstep=${LOCKSTEP:-build/bin/lockstep}
shopt -s extglob
[ $# -gt 0 ] || set -- experiments/published/!(names).yaml
printf '%-26s %13s %13s %6s  %s\n' experiment 'published s' 'predicted s' ratio memory
for file in "$@"; do
    # "3.7 s" or "6.25 to 7.08 s"; the ratio is to the middle of a range.
    published=$(sed -n 's/^# published step: \([0-9.]*\)\( to \([0-9.]*\)\)\? s.*/\1 \3/p' "$file")
    "$lockstep" simulate "$file" --json --quiet | awk -v name="$(basename "$file" .yaml)" -v published="$published" '
        function number(line) { gsub(/.*": |,$/, "", line); return line }
        /"median":/ && !step { step = number($0) }
        /does not fit/ { fit = "does not fit" }
        END {
            count = split(published, range, " ")
            middle = count == 2 ? (range[1] + range[2]) / 2 : range[1]
            text = count == 2 ? range[1] " to " range[2] : count ? range[1] : "-"
            printf "%-26s %13s %13.4g %6s  %s\n", name, text, step, count ? sprintf("%.2f", step / middle) : "-", fit ? fit : "fits"
        }'
done
