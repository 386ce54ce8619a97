# shellcheck shell=bash
# A Docker engine for the test: the one that answers already, or one of our own, whose images and
# containers lie in ENGINE_DIR and which ends with the test.

ENGINE_WAIT_S=30
ENGINE_PID=''

# engine_start DIR: false where none can be had; ENGINE_WHY says why.
engine_start() {
    local dir=$1 end=$((SECONDS + ENGINE_WAIT_S))
    if docker info >/dev/null 2>&1; then return; fi
    ENGINE_WHY="no Docker engine answers, and dockerd is not here"
    command -v dockerd >/dev/null || return 1
    ENGINE_WHY="no Docker engine answers, and only root may start one"
    [ "$(id -u)" = 0 ] || return 1
    mkdir -p "$dir"
    # A unix socket has a short path.
    ENGINE_RUN=$(mktemp -d /tmp/fx-docker.XXXXXX)
    setsid dockerd --data-root "$dir" --exec-root "$ENGINE_RUN/exec" --pidfile "$ENGINE_RUN/pid" \
        -H "unix://$ENGINE_RUN/docker.sock" >"$dir.log" 2>&1 </dev/null &
    ENGINE_PID=$!
    export DOCKER_HOST=unix://$ENGINE_RUN/docker.sock
    until docker info >/dev/null 2>&1; do
        if ! kill -0 "$ENGINE_PID" 2>/dev/null || [ $SECONDS -ge $end ]; then
            ENGINE_WHY="dockerd does not start here: $(tail -n 1 "$dir.log" | cut -c1-200)"
            engine_stop
            return 1
        fi
        sleep 0.2
    done
}

engine_stop() {
    [ -n "$ENGINE_PID" ] || return 0
    kill "$ENGINE_PID" 2>/dev/null
    wait "$ENGINE_PID" 2>/dev/null
    rm -rf "$ENGINE_RUN"
    ENGINE_PID=''
}
