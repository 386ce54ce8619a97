# shellcheck shell=bash
# How each process of the suite is started. Instance i of a service has gRPC port
# BASE_PORT + 10 i + its number, and its admin port 1000 above that.

SERVICES=(gateway tenant scheduler slicer worker) # the index is the number in the port
READY_S=60

# grpc_port SERVICE INSTANCE
grpc_port() {
    local i
    for i in "${!SERVICES[@]}"; do
        [ "${SERVICES[$i]}" != "$1" ] || echo $((BASE_PORT + 10 * $2 + i))
    done
}

admin_port() { echo $(($(grpc_port "$1" "$2") + 1000)); }

# addresses SERVICE COUNT: "127.0.0.1:50052,127.0.0.1:50062"
addresses() {
    local i list=''
    for ((i = 0; i < $2; i++)); do list+=,127.0.0.1:$(grpc_port "$1" "$i"); done
    echo "${list#,}"
}

# The environment of every program of ours, the CLI's too.
suite_env() {
    export FX_REDIS_URL=unix://$REDIS_SOCKET FX_MODEL_DIR=$MODELS
    export FX_BOOTSTRAP_TOKEN_FILE=$TOKEN_FILE
    export FX_TENANT_ADDR FX_SLICER_ADDR FX_SCHEDULER_ADDR FX_HTTP_ADDR
    FX_TENANT_ADDR=$(addresses tenant 1)
    FX_SLICER_ADDR=$(addresses slicer 1)
    FX_SCHEDULER_ADDR=$(addresses scheduler "$SCHEDULERS")
    FX_HTTP_ADDR=127.0.0.1:$PORT
}

# start_service SERVICE INSTANCE NAME [VARIABLE=VALUE...]
start_service() {
    local service=$1 instance=$2 name=$3 port admin
    shift 3
    ! is_alive "$name" || return 0
    port=$(grpc_port "$service" "$instance")
    admin=$(admin_port "$service" "$instance")
    need_port "$port" --base-port
    need_port "$admin" --base-port
    echo "$admin" >"$RUN/$name.admin"
    spawn "$name" env FX_GRPC_ADDR=127.0.0.1:"$port" FX_ADMIN_ADDR=127.0.0.1:"$admin" "$@" \
        "$BIN/fractal-$service"
}

is_ready() {
    curl -sf -m 2 -o /dev/null "http://127.0.0.1:$(<"$RUN/$1.admin")/readyz" 2>/dev/null
}

# await_ready NAME...: each within READY_S of now.
await_ready() {
    local end=$((SECONDS + READY_S)) name
    for name; do
        until is_ready "$name"; do
            is_alive "$name" || report_failure "$name" "ended before it was ready"
            [ $SECONDS -lt $end ] || report_failure "$name" "is not ready after $READY_S s"
            sleep 0.05
        done
    done
}

report_failure() {
    tail -n 12 "$LOGS/$1.log" | sed 's/^/  | /' >&2
    die "$1 $2; its last log lines are above" \
        "cure what they name, then ./fractal up again; the whole log: $LOGS/$1.log"
}

start_redis() {
    ! is_alive redis || return 0
    need_redis
    rm -f "$REDIS_SOCKET"
    spawn redis redis-server --port 0 --unixsocket "$REDIS_SOCKET" --unixsocketperm 700 \
        --dir "$DATA/redis" --appendonly yes --appendfsync always --save '' \
        --maxmemory-policy noeviction --daemonize no
    local end=$((SECONDS + READY_S))
    until [ "$(redis-cli -s "$REDIS_SOCKET" ping 2>/dev/null)" = PONG ]; do
        is_alive redis || report_failure redis "ended before it was ready"
        [ $SECONDS -lt $end ] || report_failure redis "is not ready after $READY_S s"
        sleep 0.05
    done
}

# models: names in the store, org/name too.
models() {
    local path
    while read -r path; do
        path=${path#"$MODELS"/}
        echo "${path%/current}"
    done < <(find "$MODELS" -mindepth 2 -maxdepth 3 -name current 2>/dev/null | sort)
}

worker_name() { echo "worker-${1//\//_}-$2"; }

# One worker process serves one model; instances count on over all models.
start_workers() {
    local model i instance=0 name names=()
    while read -r model; do
        for ((i = 0; i < WORKERS; i++, instance++)); do
            name=$(worker_name "$model" "$i")
            is_alive "$name" || instance=$(free_instance worker "$instance")
            start_service worker "$instance" "$name" FX_MODEL="$model"
            names+=("$name")
        done
    done < <(models)
    await_ready "${names[@]}"
}

# free_instance SERVICE FROM: the first instance whose ports nobody listens on; a model imported
# later may sort before those that already run.
free_instance() {
    local i
    for ((i = $2; i < $2 + 10 * INSTANCES_MAX; i++)); do
        if ! port_holder "$(grpc_port "$1" "$i")" >/dev/null; then
            echo "$i"
            return
        fi
    done
    die "no free port for another $1" "./fractal up --base-port with another port"
}

start_schedulers() {
    local i names=()
    for ((i = 0; i < SCHEDULERS; i++)); do
        start_service scheduler "$i" "scheduler-$i"
        names+=("scheduler-$i")
    done
    await_ready "${names[@]}"
}

start_gateways() {
    local i names=()
    for ((i = 0; i < GATEWAYS; i++)); do
        is_alive "gateway-$i" || need_port $((PORT + i)) --port
        start_service gateway "$i" "gateway-$i" FX_HTTP_ADDR=127.0.0.1:$((PORT + i))
        names+=("gateway-$i")
    done
    await_ready "${names[@]}"
}
