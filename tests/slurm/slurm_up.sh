#!/usr/bin/env bash
# Starts a Slurm of one node in a folder of its own: munged, slurmctld and slurmd as root, without systemd and cgroups.
# usage: slurm_up.sh FOLDER CPUS        then: export SLURM_CONF=FOLDER/slurm.conf        stop with slurm_down.sh FOLDER
set -euo pipefail
folder=$1
cpus=$2
node=$(hostname -s)
mkdir -p "$folder"/state "$folder"/spool "$folder"/log

mkdir -p /run/munge
chown munge:munge /run/munge
chmod 755 /run/munge
if ! pgrep -x munged >/dev/null; then
    runuser -u munge -- /usr/sbin/munged
    touch "$folder/started-munged"
fi

cat > "$folder/slurm.conf" <<CONF
ClusterName=lockstep-test
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
KillWait=5
NodeName=$node NodeAddr=127.0.0.1 CPUs=$cpus Boards=1 SocketsPerBoard=1 CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=2000 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
CONF

export SLURM_CONF=$folder/slurm.conf
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF"
for _ in $(seq 100); do
    [ "$(sinfo -h -o %t 2>/dev/null)" = idle ] && exit 0
    sleep 0.1
done
echo "the Slurm node did not become idle; last lines of its logs:" >&2
tail -n 5 "$folder"/log/*.log >&2
exit 1
