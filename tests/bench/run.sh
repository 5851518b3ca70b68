#!/usr/bin/env bash
# Every figure with its limit. Ratios come from interleaved pairs inside each program.
# usage: bash tests/bench/run.sh [BUILD_DIR]      exit 4 when a limit is missed
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build-ci}
[ -x "$build/tests/bench/world_bench" ] || { echo "no benchmarks in $build; build it first: cmake --preset ci && cmake --build --preset ci" >&2; exit 1; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
mpirun --bind-to none -n 2 "$build/tests/bench/world_bench" --benchmark_format=json >"$results/world.json"
for name in driver engine plan record scale search; do "$build/tests/bench/${name}_bench" --benchmark_format=json >"$results/$name.json"; done
if [ -x "$build/tests/bench/gpu_bench" ]; then
    "$build/tests/bench/gpu_bench" --benchmark_format=json >"$results/gpu.json" || rm "$results/gpu.json"   # says why, where there is no GPU
fi
python3 tests/bench/table.py "$results"/*.json
