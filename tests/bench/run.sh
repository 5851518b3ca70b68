#!/usr/bin/env bash
# Every figure with its limit, as a table. Ratios come from interleaved pairs inside each program.
# usage: bash tests/bench/run.sh [BUILD_DIR]      exit 4 when a limit is missed
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build-ci}
[ -x "$build/tests/bench/world_bench" ] || { echo "no benchmarks in $build; build it first: cmake --preset ci && cmake --build --preset ci" >&2; exit 1; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
mpirun --bind-to none -n 2 "$build/tests/bench/world_bench" | tee -a "$lines"
for name in driver_bench engine_bench record_bench; do "$build/tests/bench/$name" | tee -a "$lines"; done
python3 tests/bench/table.py "$lines"
