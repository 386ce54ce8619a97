# shellcheck shell=bash
# Processes by pid files. A pid file holds "PID START", START being the kernel's start time of that
# process: a number reused by another process is never taken for ours.

# started_at PID: its start time in clock ticks, into STARTED_AT; fails when there is no such process.
# No child process does it: a Ctrl-C would end that child, and ours would look dead.
started_at() {
    local stat fields
    STARTED_AT=''
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -ra fields <<<"${stat##*) }"
    [ "${fields[0]}" != Z ] && STARTED_AT=${fields[19]}
}

# pid_of NAME: the pid of our running process of that name.
pid_of() {
    local pid start
    read -r pid start 2>/dev/null <"$RUN/$1.pid" || return 1
    started_at "$pid" && [ "$STARTED_AT" = "$start" ] && echo "$pid"
}

is_alive() { pid_of "$1" >/dev/null; }

# spawn NAME PROGRAM...: detached, in a session of its own, its output in a new log; the last log
# is kept as NAME.log.1. Called under `guard`: a Ctrl-C that comes before the process is in the books
# waits until it is, else nobody would stop it.
spawn() {
    local name=$1 pid interrupted=''
    shift
    [ ! -e "$LOGS/$name.log" ] || mv -f "$LOGS/$name.log" "$LOGS/$name.log.1"
    trap 'interrupted=130' INT
    trap 'interrupted=143' TERM
    setsid "$@" >>"$LOGS/$name.log" 2>&1 </dev/null 9>&- &
    pid=$!
    STARTED+=("$name")
    started_at $pid || true
    echo "$pid $STARTED_AT" >"$RUN/$name.pid"
    guard
    [ -z "$interrupted" ] || exit "$interrupted"
}

# signal NAME SIGNAL: only ever to a process that `spawn` started.
signal() {
    local pid
    pid=$(pid_of "$1") || return 0
    kill "-$2" "$pid" 2>/dev/null || true
}

# await_end SECONDS NAME...: true when all have ended.
await_end() {
    local end=$((SECONDS + $1)) name
    shift
    for name; do
        while is_alive "$name"; do
            [ $SECONDS -lt $end ] || return 1
            sleep 0.05
        done
    done
}

# stop SECONDS NAME...: SIGTERM to all, SIGKILL to those still there when the time is up.
stop() {
    local seconds=$1 name
    shift
    for name; do signal "$name" TERM; done
    if ! await_end "$seconds" "$@"; then
        for name; do
            is_alive "$name" && say "$name did not end in $seconds s: killed"
            signal "$name" KILL
        done
        await_end 5 "$@" || true
    fi
    for name; do rm -f "$RUN/$name.pid"; done
}

# port_holder PORT: who listens on the port of 127.0.0.1 or of every address; fails when nobody.
port_holder() {
    local hex inode holder
    hex=$(printf '%04X' "$1")
    inode=$(awk -v port="$hex" '$4 == "0A" { split($2, at, ":")
        if (at[2] == port && at[1] ~ /^(0100007F|0+|0+FFFF00000100007F)$/) { print $10; exit } }' \
        /proc/net/tcp /proc/net/tcp6 2>/dev/null)
    [ -n "$inode" ] || return 1
    holder=$(find /proc/[0-9]*/fd -lname "socket:\\[$inode\\]" -print -quit 2>/dev/null) || true
    [[ $holder =~ ^/proc/([0-9]+)/ ]] || { echo "another user's process" && return; }
    echo "process ${BASH_REMATCH[1]} ($(cat "/proc/${BASH_REMATCH[1]}/comm" 2>/dev/null))"
}

# need_port PORT OPTION
need_port() {
    local holder
    holder=$(port_holder "$1") || return 0
    die "port $1 is in use by $holder" "./fractal up $2 with another port, or stop that process"
}
