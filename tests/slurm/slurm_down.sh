#!/usr/bin/env bash
# Stops what slurm_up.sh FOLDER started.
folder=$1
for daemon in slurmd slurmctld; do
    [ -f "$folder/$daemon.pid" ] && kill "$(cat "$folder/$daemon.pid")" 2>/dev/null
done
[ -f "$folder/started-munged" ] && pkill -x munged
sleep 1
exit 0
