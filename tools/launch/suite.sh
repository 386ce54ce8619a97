# shellcheck shell=bash
# The commands over a whole suite.

STARTED=()
BUNDLED=fractal-tiny-moe
FIRST_PROMPT='It is a truth universally acknowledged,'
DRAIN_S=15

# names [PATTERN]: names that have a pid file, running or not.
names() {
    local file
    for file in "$RUN"/${1:-*}.pid; do
        [ -e "$file" ] && basename "$file" .pid
    done
    return 0
}

# running: some process of the suite lives.
running() {
    local name
    for name in $(names); do is_alive "$name" && return 0; done
    return 1
}

all_ready() {
    local name
    is_alive redis && is_alive tenant && is_alive slicer && is_alive scheduler-0 &&
        is_alive gateway-0 || return 1
    for name in $(names); do
        is_alive "$name" || return 1
        [ "$name" = redis ] || is_ready "$name" || return 1
    done
}

# What `up` began and did not finish is stopped, last started first.
roll_back() {
    local status=$? i
    trap '' INT TERM
    trap - EXIT
    [ ${#STARTED[@]} -eq 0 ] || say "stopping what was started"
    for ((i = ${#STARTED[@]} - 1; i >= 0; i--)); do stop 5 "${STARTED[$i]}"; done
    running || rm -f "$RUN"/*.admin "$RUN/settings" "$REDIS_SOCKET"
    exit "$status"
}

guard() {
    trap roll_back EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# make_secret FILE: 64 hex digits that only the owner reads.
make_secret() {
    [ -s "$1" ] || (umask 077 && od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$1")
}

suite_up() {
    parse_options "$@"
    no_more_arguments
    make_folders
    take_lock
    if running; then load_settings; fi
    suite_env
    if all_ready; then
        say "already running; nothing to do"
        show_access
        return
    fi
    need_packages build run
    need_redis
    if ! running; then
        rm -f "$RUN"/*.pid
        need_port "$PORT" --port
    fi
    build_programs
    guard
    save_settings
    start_suite
    [ "$QUIET" = yes ] || first_answer
    trap - EXIT INT TERM
    show_access
}

start_suite() {
    make_secret "$TOKEN_FILE"
    say "starting Redis, tenant, slicer"
    start_redis
    start_service tenant 0 tenant
    start_service slicer 0 slicer
    await_ready tenant slicer
    import_bundled
    say "starting scheduler, workers, gateway"
    start_schedulers
    start_workers
    start_gateways
    make_key
}

import_bundled() {
    [ ! -e "$MODELS/$BUNDLED/current" ] || return 0
    say "importing the bundled model $BUNDLED"
    "$BIN/fractal-cli" import "$ROOT/models/$BUNDLED" --name "$BUNDLED" --dtype int4 >&2 ||
        report_failure slicer "could not import the bundled model"
}

# key_works: false only when the gateway refuses the key; a data folder may outlive its Redis.
key_works() {
    [ -s "$KEY_FILE" ] && [ "$(curl -s -m 5 -o /dev/null -w '%{http_code}' \
        -H "Authorization: Bearer $(<"$KEY_FILE")" "http://127.0.0.1:$PORT/v1/models")" != 401 ]
}

make_key() {
    ! key_works || return 0
    say "creating the tenant 'default' and an API key"
    local key
    key=$("$BIN/fractal-cli" keys create --tenant default --label launcher) || true
    [[ $key =~ fx-[0-9a-f]{64} ]] || die "no API key could be created" "./fractal logs tenant"
    (umask 077 && echo "${BASH_REMATCH[0]}" >"$KEY_FILE")
}

first_answer() {
    say "a first answer to: $FIRST_PROMPT"
    "$BIN/fractal-cli" chat --model "$BUNDLED" --temperature 0 "$FIRST_PROMPT" ||
        report_failure gateway-0 "gave no answer"
}

show_access() {
    local key
    key=$(cat "$KEY_FILE" 2>/dev/null) || key='(none: ./fractal keys)'
    cat <<EOF

URL      http://localhost:$PORT/v1
gRPC     localhost:$(grpc_port gateway 0), fractal.v1.InferenceService
API key  $key
Try      curl -sN http://localhost:$PORT/v1/chat/completions -H 'Authorization: Bearer $key' -H 'Content-Type: application/json' -d '{"model":"$BUNDLED","stream":true,"max_tokens":64,"messages":[{"role":"user","content":"$FIRST_PROMPT"}]}'
Stop     ./fractal down
EOF
}

suite_down() {
    parse_options "$@"
    no_more_arguments
    if [ ! -d "$RUN" ]; then
        say "nothing is running"
        return
    fi
    take_lock
    if ! running; then say "nothing is running"; fi
    trap '' INT TERM
    stop_all
}

# Front to back, Redis last: each drains into what is still there.
stop_all() {
    local pattern list
    for pattern in 'gateway-*' 'worker-*' 'scheduler-*' slicer tenant redis; do
        mapfile -t list < <(names "$pattern")
        [ ${#list[@]} -eq 0 ] || [ -z "${list[*]}" ] || stop $DRAIN_S "${list[@]}"
    done
    rm -f "$RUN"/*.admin "$RUN/settings" "$REDIS_SOCKET"
}

# state_of NAME
state_of() {
    if ! is_alive "$1"; then
        echo ended
    elif [ "$1" = redis ] || is_ready "$1"; then
        echo ready
    else
        echo 'not ready'
    fi
}

suite_status() {
    parse_options "$@"
    no_more_arguments
    load_settings
    local name state wrong=0
    if ! running; then
        echo "not running"
        return 3
    fi
    printf '%-32s %-8s %-10s %s\n' NAME PID STATE ADMIN
    for name in $(names); do
        state=$(state_of "$name")
        [ "$state" = ready ] || wrong=1
        printf '%-32s %-8s %-10s %s\n' "$name" "$(pid_of "$name" || echo -)" "$state" \
            "$([ "$name" = redis ] && echo "$REDIS_SOCKET" || echo "127.0.0.1:$(<"$RUN/$name.admin")")"
    done
    echo "URL http://localhost:$PORT/v1"
    return $wrong
}

suite_logs() {
    parse_options "$@"
    local follow=() service='*' files argument
    for argument in "${REST[@]}"; do
        if [ "$argument" = -f ]; then follow=(-f); else service=$argument; fi
    done
    mapfile -t files < <(compgen -G "$LOGS/$service.log" || compgen -G "$LOGS/$service-*.log")
    [ -n "${files[*]}" ] || die "no log of '$service' in $LOGS" "./fractal status lists the names"
    tail -n 100 "${follow[@]}" "${files[@]}"
}

# client COMMAND...: the compiled CLI, pointed at this suite.
client() {
    [ -x "$BIN/fractal-cli" ] || die "fractal-cli is not built yet" "./fractal up"
    take_data "${@:2}"
    load_settings
    suite_env
    exec "$BIN/fractal-cli" "$1" "${REST[@]}"
}

# import goes through the CLI; then every model of the store gets its workers.
suite_import() {
    (client import "$@") || exit $?
    take_data "$@"
    load_settings
    suite_env
    if ! is_alive redis || ! is_alive scheduler-0; then return 0; fi
    take_lock
    say "starting workers"
    guard
    start_workers
    trap - EXIT INT TERM
}
