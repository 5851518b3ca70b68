"""A merged run has the ranks, finished steps and Slurm provenance it should have. usage: check_run.py RUN.h5 RANKS"""

import sys

import h5py
import pandas

path, ranks = sys.argv[1], int(sys.argv[2])
with h5py.File(path, "r") as file:
    steps = pandas.DataFrame(file["steps"][:])
    assert sorted(steps["rank"].unique()) == list(range(ranks)), steps
    per_rank = steps.groupby("rank")["step"].nunique()
    assert (per_rank == per_rank.iloc[0]).all() and per_rank.iloc[0] > 0, per_rank
    text = str({name: dict(group.attrs) for name, group in file.items()}) + str(dict(file.attrs))
    assert "SLURM_JOB_ID" in text, "the Slurm job id is not recorded"
print(f"{path}: {len(steps)} steps of {ranks} ranks")
