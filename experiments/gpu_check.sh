#!/usr/bin/env bash
# Checks lockstep on a machine with NVIDIA GPUs, in less than 8 minutes: sanitizers, speed beside the libraries called alone and beside PyTorch,
# NCCL over all GPUs, and a prediction made before the measurement. Prints one table; every run is an HDF5 file in the output folder.
# usage: bash experiments/gpu_check.sh [--carried DIR | --build DIR] [--out DIR] [--gpus N]
#        bash experiments/gpu_check.sh --pack DIR        # on a machine without GPUs: a build to carry to one that has them
#   --carried DIR  a packed build: the program, its module and their libraries side by side
#   --build DIR    a build folder (default build-gpu, made here when it is missing)
#   --gpus N       ranks of the largest run (default: all GPUs)
set -uo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS
build=build-gpu carried="" out="" gpus="" pack=""
while [ $# -gt 0 ]; do
    case $1 in
        --carried | --build | --out | --gpus | --pack) [ $# -ge 2 ] || { echo "$1 wants a value" >&2; exit 2; } ;;
        *) echo "unknown option $1 (see the head of $0)" >&2; exit 2 ;;
    esac
    case $1 in
        --carried) carried=$2 ;;
        --build) build=$2 ;;
        --out) out=$2 ;;
        --gpus) gpus=$2 ;;
        --pack) pack=$2 ;;
    esac
    shift 2
done

# --- a build to carry: libraries that a machine may lack lie beside the program; those of the C library and the driver stay its own
if [ -n "$pack" ]; then
    set -e
    command -v patchelf >/dev/null || { echo "--pack needs patchelf; run: apt-get install patchelf" >&2; exit 1; }
    [ -x "$build/bin/lockstep" ] || { echo "$build/bin/lockstep is missing; build first: cmake --preset cuda -B $build && cmake --build $build" >&2; exit 1; }
    mkdir -p "$pack"
    cp "$build/bin/lockstep" "$build/bin/lockstep_gpu.so" "$pack/"
    [ -x "$build/tests/bench/gpu_bench" ] && cp "$build/tests/bench/gpu_bench" "$pack/"
    for file in "$pack"/*; do ldd "$file"; done | awk '$3 ~ /^\// {print $3}' | sort -u |
        grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*|libcuda|libnvidia-ml)\.so' | xargs -I{} cp -Lu {} "$pack/"
    # cuDNN loads its parts by name.
    cudnn=$(ldd "$pack/lockstep_gpu.so" | awk '/libcudnn\.so/ {print $3}')
    cp -Lu "$(dirname "$cudnn")"/libcudnn_*.so.9 "$pack/"
    for file in "$pack"/*; do patchelf --set-rpath "\$ORIGIN" "$file" 2>/dev/null || true; done
    cp -r models topology experiments "$pack/"
    echo "packed into $pack; on the GPU machine: bash $pack/experiments/gpu_check.sh --carried $pack"
    exit 0
fi

# --- what is here
command -v nvidia-smi >/dev/null || { echo "nvidia-smi is missing: this host has no NVIDIA driver; install it, or run on a GPU machine" >&2; exit 1; }
present=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
[ "$present" -gt 0 ] || { echo "nvidia-smi lists no GPU" >&2; exit 1; }
gpus=${gpus:-$present}
out=${out:-runs/gpu-check-$(date -u +%Y%m%dT%H%M%SZ)}
mkdir -p "$out" || exit 1
table=$out/table.txt
: >"$table"
row() { printf '%-44s %-34s %s\n' "$1" "$2" "${3:-}" | tee -a "$table"; }
left() { echo $((${1:-470} - (SECONDS - started))); }
# limited SECONDS COMMAND...: at most so long, and never past 8 minutes in all
limited() {
    local limit=$1 rest
    rest=$(left)
    shift
    [ "$rest" -gt 5 ] || return 124
    timeout $((limit < rest ? limit : rest)) "$@"
}
json() { python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))" "$1" "$2" 2>/dev/null; }

if [ -n "$carried" ]; then
    lockstep=$carried/lockstep bench=$carried/gpu_bench
    export LOCKSTEP_DATA_PATH=${LOCKSTEP_DATA_PATH:-$carried}
else
    if [ ! -x "$build/bin/lockstep" ]; then
        source experiments/install.sh
        # shellcheck disable=SC2086
        install_missing $build_packages libbenchmark-dev libgtest-dev libgmock-dev python3
        cmake --preset cuda -B "$build" -DLOCKSTEP_UNIT_TESTS=OFF >"$out/configure.log" 2>&1 && cmake --build "$build" --target lockstep gpu_bench >"$out/build.log" 2>&1 ||
            { echo "the build failed; see $out/configure.log and $out/build.log" >&2; exit 1; }
        started=$SECONDS
    fi
    lockstep=$build/bin/lockstep bench=$build/tests/bench/gpu_bench
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
launch() { # RANKS COMMAND...
    if [ "$1" -eq 1 ]; then "${@:2}"; else mpirun --bind-to none -n "$1" "${@:2}"; fi
}
"$lockstep" --version | tee "$out/versions.txt"
limited 60 "$lockstep" device detect >"$out/device.txt" 2>&1 && cat "$out/device.txt" || { cat "$out/device.txt"; exit 1; }

echo
row "check" "result" "target"
row "-----" "------" "------"
# --- 1. sanitizers
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        if limited 90 compute-sanitizer --tool $tool --error-exitcode 9 "$lockstep" run experiments/gpu-tiny.yaml --backend gpu --steps 1 --warmup 0 \
            --out "$out/sanitizer-$tool" --quiet >"$out/$tool.log" 2>&1; then
            row "compute-sanitizer $tool" "clean" "clean"
        else
            row "compute-sanitizer $tool" "NOT clean or not finished ($out/$tool.log)" "clean"
        fi
    done
else
    row "compute-sanitizer" "not installed" "clean"
fi

# --- 2. values: the wire, and the step beside the same step on the CPU's terms
for kind in wire numeric; do
    if limited 60 launch "$gpus" "$lockstep" run experiments/gpu-tiny.yaml --backend gpu --check $kind --out "$out/check-$kind" --quiet >"$out/$kind.log" 2>&1; then
        row "--check=$kind on $gpus GPU(s)" "passed" "passes"
    else
        row "--check=$kind on $gpus GPU(s)" "FAILED ($out/$kind.log)" "passes"
    fi
done

# --- 3. kernels beside the libraries called alone
if [ -x "$bench" ] && limited 60 "$bench" --benchmark_format=json >"$out/bench.json" 2>"$out/bench.log"; then
    row "GEMM over cuBLASLt alone (worst of the sweep)" "$(json "$out/bench.json" "'%.3f' % (1 / max(b['ratio'] for b in d['benchmarks']))")" ">= 0.97"
else
    row "GEMM over cuBLASLt alone" "not measured ($out/bench.log)" ">= 0.97"
fi

# --- 4. steps beside PyTorch
for model in resnet50 gpt-small; do
    run=$out/$model-1
    limited 90 "$lockstep" run experiments/gpu-$model.yaml --backend gpu --out "$run" --json >"$out/$model.json" 2>"$out/$model.log" ||
        { row "$model step on 1 GPU" "FAILED ($out/$model.log)"; continue; }
    ours=$(json "$out/$model.json" "d['results'][0]['step_time_s']['median']")
    idle=$(json "$out/$model.json" "'%.1f %%' % (100 * (d['results'][0]['breakdown_s']['launch'] + d['results'][0]['breakdown_s']['idle']) / sum(d['results'][0]['breakdown_s'].values()))")
    row "$model step on 1 GPU" "$(json "$out/$model.json" "'%.2f ms' % (1e3 * d['results'][0]['step_time_s']['median'])")"
    row "$model: GPU idle or waiting for launches" "$idle" "< 3 %"
    theirs=$(limited 60 python3 experiments/gpu_check_torch.py $model 2>"$out/torch-$model.log")
    if [ -n "$theirs" ]; then
        row "$model step over PyTorch's" "$(python3 -c "print('%.2f (PyTorch %.2f ms)' % ($ours / $theirs, 1e3 * $theirs))")" "<= 1.10"
    else
        row "$model step over PyTorch's" "no PyTorch here ($out/torch-$model.log)" "<= 1.10"
    fi
done

# --- 5. predict, then measure
if limited 120 launch "$gpus" "$lockstep" calibrate --measure --out "$out/this-machine.yaml" >"$out/calibrate.txt" 2>&1; then
    for model in resnet50 gpt-small; do
        limited 20 "$lockstep" simulate experiments/gpu-$model.yaml --machine "$out/this-machine.yaml" --ranks "$gpus" --json >"$out/$model-predicted.json" 2>"$out/$model-predicted.log"
        limited 90 launch "$gpus" "$lockstep" run experiments/gpu-$model.yaml --backend gpu --out "$out/$model-$gpus" --json >"$out/$model-$gpus.json" 2>"$out/$model-$gpus.log"
        predicted=$(json "$out/$model-predicted.json" "d['results'][0]['step_time_s']['median']")
        measured=$(json "$out/$model-$gpus.json" "d['results'][0]['step_time_s']['median']")
        if [ -n "$predicted" ] && [ -n "$measured" ]; then
            row "$model on $gpus GPU(s): predicted over measured" "$(python3 -c "print('%.2f (%.2f ms measured)' % ($predicted / $measured, 1e3 * $measured))")" "1.00"
        else
            row "$model on $gpus GPU(s): predicted over measured" "FAILED ($out/$model-predicted.log, $out/$model-$gpus.log)" "1.00"
        fi
    done
else
    row "calibrate --measure" "FAILED ($out/calibrate.txt)"
fi
echo
echo "$((SECONDS - started)) s; table, runs (HDF5) and logs are in $out"
! grep -qE 'FAILED|NOT clean' "$table"
