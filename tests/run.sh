#!/usr/bin/env bash
# Installs what the tests need, builds with the sanitizers and without, and runs every test. Ends in ctest's summary.
# usage: bash tests/run.sh [ctest options]
set -euo pipefail
cd "$(dirname "$0")/.."
source experiments/install.sh
# shellcheck disable=SC2086
install_missing $build_packages libgtest-dev libgmock-dev libbenchmark-dev clang-format hdf5-tools python3 python3-h5py python3-pandas python3-jsonschema \
    slurmctld slurmd slurm-client munge

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Measured rates of the host belong to this test run, not to the user's cache.
XDG_CACHE_HOME=$(mktemp -d)
export XDG_CACHE_HOME
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
if [ -z "${LOCKSTEP_CORPUS:-}" ] && [ -d ../shared/data ]; then
    LOCKSTEP_CORPUS=$(cd ../shared/data && pwd)
    export LOCKSTEP_CORPUS
fi

echo "== formatting"
git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs clang-format --dry-run --Werror

echo "== building"
cmake --preset ci >/dev/null
cmake --build --preset ci
cmake --preset dev >/dev/null
cmake --build --preset dev

echo "== tests under AddressSanitizer and UndefinedBehaviorSanitizer"
ctest --preset dev "$@"
echo "== release build: ranks under mpirun, commands, Slurm, golden files, benchmarks, and all that the sanitized build leaves out"
ctest --preset ci "$@"
