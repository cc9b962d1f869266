#!/usr/bin/env bash
# A complete SLURM on this one machine, without systemd or cgroups: for trying the scripts here, and for the tests.
#
#   one_node.sh start FOLDER      everything it writes goes into FOLDER (new, or empty)
#   export SLURM_CONF=FOLDER/slurm.conf
#   one_node.sh stop FOLDER
#
# Run as root, with Debian's packages slurm-wlm and munge installed.
set -euo pipefail

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# = 2 ] || usage
mark="# one-node SLURM"
host=$(hostname -s)

stop_process() { # PID_FILE: the process ends, forcibly after 10 s
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 0
    kill "$pid" 2>/dev/null || return 0
    for _ in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
}

stop() {
    if [ -e "$folder/slurm.conf" ]; then
        export SLURM_CONF="$folder/slurm.conf"
        if timeout 5 scontrol ping >/dev/null 2>&1; then
            timeout 5 scancel --user=root || true
            for _ in $(seq 100); do
                [ -n "$(timeout 5 squeue --noheader 2>/dev/null)" ] || break
                sleep 0.1
            done
        fi
    fi
    for daemon in slurmd slurmctld; do # both begin to stop before either is waited for
        kill "$(cat "$folder/$daemon.pid" 2>/dev/null)" 2>/dev/null || true
    done
    for daemon in slurmd slurmctld munge/munged; do
        stop_process "$folder/$daemon.pid"
    done
    if grep -q "$mark" /etc/hosts; then
        local kept
        kept=$(grep -v "$mark" /etc/hosts) && printf '%s\n' "$kept" >/etc/hosts
    fi
}

free_port() { # a port on which nothing listens
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

start() {
    [ "$(id -u)" = 0 ] || { echo "one_node.sh starts SLURM's daemons and needs root" >&2; exit 1; }
    for program in munged slurmctld slurmd; do
        command -v "$program" >/dev/null || { echo "$program is missing: apt-get install slurm-wlm munge" >&2; exit 1; }
    done
    mkdir -p "$folder"/{ctld,slurmd,log,munge}
    chmod 755 "$folder" "$folder/munge"
    dd if=/dev/urandom of="$folder/munge/munge.key" bs=1024 count=1 status=none
    chmod 400 "$folder/munge/munge.key"
    chown -R munge "$folder/munge"
    local memory
    memory=$(awk '/^MemTotal/ {m = int($2 / 1024) - 1024; print (m < 1024) ? 1024 : m}' /proc/meminfo)
    getent hosts "$host" >/dev/null || printf '127.0.0.1 %s %s\n' "$host" "$mark" >>/etc/hosts
    cat >"$folder/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
StateSaveLocation=$folder/ctld
SlurmdSpoolDir=$folder/slurmd
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldTimeout=60
SlurmdTimeout=60
InactiveLimit=0
KillWait=5
MinJobAge=60
Waittime=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 RealMemory=$memory State=UNKNOWN
PartitionName=debug Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF
    export SLURM_CONF="$folder/slurm.conf"
    setpriv --reuid=munge --regid=munge --clear-groups munged \
        --key-file="$folder/munge/munge.key" --socket="$folder/munge/socket" --pid-file="$folder/munge/munged.pid" \
        --log-file="$folder/munge/munged.log" --seed-file="$folder/munge/munged.seed" --num-threads=2
    slurmctld
    slurmd -N "$host"
    for _ in $(seq 200); do
        case $(timeout 5 sinfo --noheader --format=%t 2>/dev/null || true) in
            idle* | mix* | alloc*) echo "export SLURM_CONF=$SLURM_CONF"; return ;;
        esac
        sleep 0.1
    done
    echo "SLURM did not start within 20 s:" >&2
    tail -n 20 "$folder"/log/*.log "$folder/munge/munged.log" >&2
    stop
    exit 1
}

folder=$(realpath -m "$2")
case $1 in
    start) start ;;
    stop) stop ;;
    *) usage ;;
esac
