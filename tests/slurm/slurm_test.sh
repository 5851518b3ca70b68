#!/usr/bin/env bash
# Submits the scripts of slurm/ to a real Slurm on this machine and looks at what they leave.
# usage: slurm_test.sh SOURCE_DIR LOCKSTEP        exit 77: skipped, with the reason
set -euo pipefail
source_dir=$1
lockstep=$2
skip() { echo "SKIPPED: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "starting Slurm daemons needs root"
for program in slurmctld slurmd munged sbatch srun; do
    command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || skip "$program is not installed"
done

work=$(mktemp -d)
export SLURM_CONF=$work/slurm/slurm.conf OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
finish() {
    local code=$?
    if [ $code -ne 0 ]; then tail -n 40 "$work"/logs/* 2>/dev/null || true; fi
    bash "$source_dir/tests/slurm/slurm_down.sh" "$work/slurm"
    rm -rf "$work"
    exit $code
}
trap finish EXIT
bash "$source_dir/tests/slurm/slurm_up.sh" "$work/slurm" 4

fail() { echo "FAILED: $1" >&2; exit 1; }
# submit SCRIPT ARGUMENTS...: waits until the job is gone and prints its log.
submit() {
    local job
    job=$(cd "$work" && sbatch --parsable --cpus-per-task=1 "$@")
    for _ in $(seq 600); do
        [ -z "$(squeue -h -j "$job" 2>/dev/null)" ] && break
        sleep 0.5
    done
    cat "$work"/logs/*-"$job".out
}

mkdir -p "$work/logs"
export LOCKSTEP=$lockstep RUNS=$work/runs LOCKSTEP_SITE=$source_dir/slurm/site.sh
experiment=$source_dir/tests/data/tiny.yaml

echo "== one run of two ranks"
log=$(submit --ntasks=2 "$source_dir/slurm/run.sbatch" "$experiment")
echo "$log"
run=$(echo "$work"/runs/lockstep-run-*)
/usr/bin/python3 "$source_dir/tests/slurm/check_run.py" "$run/run.h5" 2

echo "== a scaling sweep of one and two ranks in one allocation"
log=$(submit --ntasks=2 "$source_dir/slurm/scaling.sbatch" "$experiment" 1 2)
echo "$log"
sweep=$(echo "$work"/runs/lockstep-scaling-*)
/usr/bin/python3 "$source_dir/tests/slurm/check_run.py" "$sweep/1/run.h5" 1
/usr/bin/python3 "$source_dir/tests/slurm/check_run.py" "$sweep/2/run.h5" 2
"$lockstep" analyze "$sweep"/1 "$sweep"/2 --json > "$work/analysis.json"
/usr/bin/python3 - "$work/analysis.json" <<'PY'
import json, sys
results = json.load(open(sys.argv[1]))["results"]
assert [r["ranks"] for r in results] == [1, 2], results
assert all(r["origin"] == "measured" and r["throughput"]["value"] > 0 for r in results), results
assert results[0]["efficiency"] == 1 and results[1]["efficiency"] > 0, results
PY

echo "== a step without PMIx is refused before MPI starts"
code=0
message=$(cd "$work" && srun --mpi=none --ntasks=2 "$lockstep" run "$experiment" --out "$work/refused" 2>&1) || code=$?
echo "$message"
[ $code -eq 2 ] || fail "exit code $code instead of 2"
[[ $message == *"srun --mpi=pmix"* ]] || fail "the message does not name srun --mpi=pmix"
[ ! -e "$work/refused" ] || fail "the refused run left a folder"
echo "all Slurm checks passed"
