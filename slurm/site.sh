# Sourced by the scripts beside it: what differs from cluster to cluster. Edit once.

# Environment modules, when the site has them:
# module load openmpi hdf5

# The program: on PATH, or named here.
LOCKSTEP=${LOCKSTEP:-lockstep}
# How srun starts MPI programs. Debian's and most sites' Open MPI wants pmix; pmi2 fails with it.
SRUN_MPI=${SRUN_MPI:-pmix}
# Where runs go. A disk of the node or a parallel file system; not NFS (live HDF5 files need POSIX write order).
RUNS=${RUNS:-${SCRATCH:-$PWD}/runs}

command -v "$LOCKSTEP" >/dev/null || { echo "lockstep is not found as '$LOCKSTEP'; set LOCKSTEP in slurm/site.sh" >&2; exit 1; }
