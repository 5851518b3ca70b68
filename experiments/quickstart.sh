#!/usr/bin/env bash
# From a fresh clone on Debian 12 to a measured run of this machine, its analysis, and a prediction for machines it doesn't have.
# usage: bash experiments/quickstart.sh        (the build goes to build/, the runs to runs/)
set -euo pipefail
cd "$(dirname "$0")/.."
source experiments/install.sh
# shellcheck disable=SC2086
install_missing $build_packages

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
gpus=$( (nvidia-smi -L 2>/dev/null || true) | grep -c '^GPU' || true)
if [ ! -f build/CMakeCache.txt ]; then
    # Without a GPU here its executor would only be built to say that a driver is missing; `cmake --preset cuda` builds it anyway.
    cmake --preset default -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_CUDA="$([ "$gpus" -gt 0 ] && echo AUTO || echo OFF)" >/dev/null
fi
echo "== building (a few minutes the first time)"
cmake --build build --target lockstep | tail -n 1

lockstep=build/bin/lockstep
runs=runs/quickstart-$(date -u +%Y%m%dT%H%M%SZ)
cores=$(nproc)
ranks=$((cores < 2 ? 1 : 2))
launch() { mpirun --bind-to none --mca mpi_yield_when_idle 1 -n "$1" "${@:2}"; }

echo
echo "== 1. measuring this host: $ranks rank(s) at a time"
launch "$ranks" $lockstep machine detect --threads $((cores / ranks)) --quiet >/dev/null
for n in $(seq 1 "$ranks"); do
    echo
    echo "== 2. training ResNet-50 for real on $n rank(s)"
    launch "$n" $lockstep run experiments/quick.yaml --backend cpu --out "$runs/$n" --quiet >/dev/null
done

if [ "$gpus" -gt 0 ]; then
    echo
    echo "== 2. training ResNet-50 for real on 1 and on $gpus GPU(s)"
    $lockstep run experiments/gpu-resnet50.yaml --out "$runs-gpu/1" --quiet >/dev/null
    [ "$gpus" -eq 1 ] || launch "$gpus" $lockstep run experiments/gpu-resnet50.yaml --out "$runs-gpu/$gpus" --quiet >/dev/null
    $lockstep analyze "$runs-gpu"/*
fi

echo
echo "== 3. what was measured"
$lockstep analyze "$runs"/*

echo "== 4. what is predicted for this host"
$lockstep simulate experiments/quick.yaml --ranks "$(seq -s, 1 "$ranks")"

echo "== 5. the same model and BERT on cards this machine doesn't have"
$lockstep simulate experiments/a100-vs-v100.yaml
$lockstep simulate experiments/a100-vs-v100.yaml --json | awk -f experiments/beside_blog.awk
echo "(The blog states neither batch nor card count and does not name its Transformer; see experiments/beside_blog.awk.)"
echo
echo "The runs are in $runs. Next: $lockstep help"
