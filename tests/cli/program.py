"""Runs the lockstep program for the tests beside it."""

import os
import pathlib
import subprocess

PROGRAM = os.environ["LOCKSTEP_PROGRAM"]
SOURCE = pathlib.Path(__file__).resolve().parents[2]
TINY = str(SOURCE / "tests/data/tiny.yaml")


def clean_environment(extra=None):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LOCKSTEP_", "NO_COLOR"))}
    environment.update(extra or {})
    return environment


def lockstep(*arguments, ranks=None, environment=None, timeout=300):
    """CompletedProcess of one invocation, under mpirun when `ranks` is given."""
    command = [PROGRAM, *map(str, arguments)]
    if ranks is not None:
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-n", str(ranks), *command]
    return subprocess.run(command, capture_output=True, text=True, env=clean_environment(environment), timeout=timeout, check=False)
