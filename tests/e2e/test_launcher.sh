#!/usr/bin/env bash
# test_launcher.sh BUILD_DIR: ./fractal itself: up, a second up, down; what it says when something
# is in the way. Every test has a data folder and ports of its own.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
FRACTAL=$ROOT/fractal
BUNDLED=fractal-tiny-moe
STEP_S=60 PORTS=20
for name in "${!FX_@}"; do unset "$name"; done
export FRACTAL_BUILD=$1

WORK=$(mktemp -d -t fx-up-XXXXXX)
DATA='' BASE=0 PORT=0 HELD='' CHILDREN=()
OUT='' ERR='' CODE=0

# -- what tests are made of ---------------------------------------------------------------------

fail() {
    echo "FAILED: $*" >&2
    printf 'stdout: %s\nstderr: %s\n' "$OUT" "$ERR" >&2
    exit 1
}

# run COMMAND...: OUT, ERR and CODE.
run() {
    CODE=0
    "$@" >"$WORK/out" 2>"$WORK/err" </dev/null || CODE=$?
    OUT=$(<"$WORK/out") ERR=$(<"$WORK/err")
}

ok() {
    run "$@"
    [ $CODE -eq 0 ] || fail "$* ends with $CODE"
}

refused() {
    run "$@"
    [ $CODE -ne 0 ] || fail "$* succeeds"
}

# has TEXT PART: TEXT holds PART.
has() { [[ $1 == *"$2"* ]] || fail "no '$2' in: $1"; }

# within SECONDS COMMAND...: true at last.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "not in time: $*"
        sleep 0.05
    done
}

now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

listening() { (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# ports_free: those of one instance from BASE, and the admin ports 1000 above them.
ports_free() {
    local i
    for ((i = 0; i < PORTS; i++)); do
        if listening $((BASE + i)) || listening $((BASE + 1000 + i)); then return 1; fi
    done
}

# checkout: a new data folder and free ports, below those the kernel hands out.
checkout() {
    DATA=$(mktemp -d "$WORK/data-XXXXXX")
    BASE=$((20000 + $$ % 500 * PORTS))
    until ports_free; do
        BASE=$((BASE + PORTS))
        [ $BASE -lt 31000 ] || fail "no free ports"
    done
    PORT=$((BASE + PORTS - 1))
    UP=("$FRACTAL" up --data "$DATA" --port "$PORT" --base-port "$BASE")
}

# fractal COMMAND ARGUMENT...: of this data folder.
fractal() {
    local command=$1
    shift
    "$FRACTAL" "$command" --data "$DATA" "$@"
}

# processes: pids whose environment or arguments name the data folder.
processes() {
    # shellcheck disable=SC2062
    printf '%s' "$DATA" |
        { grep -lsaF -f - /proc/[0-9]*/environ /proc/[0-9]*/cmdline || true; } |
        sed -E 's#/proc/([0-9]+)/.*#\1#' | sort -u
}

none_left() { [ -z "$(processes)" ]; }

assert_nothing_left() {
    local left
    within 5 none_left
    left=$(find "$DATA" -type s -o -path "$DATA/run/*.pid")
    [ -z "$left" ] || fail "left behind: $left"
    ! listening "$PORT" || fail "port $PORT is still taken"
}

# child COMMAND...: in the background, in a process group of its own; its pid is $!.
child() {
    set -m
    "$@" </dev/null &
    set +m
    CHILDREN+=($!)
}

# hold PORT: somebody else listens on it; HELD is its pid.
hold() {
    child redis-server --port "$1" --bind 127.0.0.1 --save '' --dir "$WORK" >/dev/null
    HELD=$!
    within 5 listening "$1"
}

end_child() {
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

clean_up() {
    local status=$? pid
    trap - EXIT
    for pid in "${CHILDREN[@]}"; do end_child "$pid"; done
    for DATA in "$WORK"/data-*; do
        [ -d "$DATA" ] || continue
        "$FRACTAL" down --data "$DATA" >/dev/null 2>&1 || true
        for pid in $(processes); do kill -KILL "$pid" 2>/dev/null || true; done # it lost these
    done
    rm -rf "$WORK"
    exit $status
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# -- the tests ----------------------------------------------------------------------------------

curl_line() {
    local line
    line=$(sed -nE 's/^Try +(curl .*)$/\1/p' <<<"$OUT")
    [ -n "$line" ] || fail "no curl line"
    echo "$line"
}

# assert_streams CURL_LINE: pasted, it streams an answer to its end.
assert_streams() {
    ok sh -c "$1"
    [[ $OUT == *'data: [DONE]' ]] || fail "the stream does not end"
    has "$OUT" '"delta"'
}

up_down_up() {
    local line file
    checkout
    ok "${UP[@]}"
    has "$OUT" "http://localhost:$PORT/v1"
    [ "$(sed '/^URL/,$d' <<<"$OUT" | tr -d '[:space:]' | wc -c)" -gt 10 ] || fail "no first answer"
    line=$(curl_line)
    second_up_is_a_no_op "$line"
    assert_streams "$line"
    for file in api-key bootstrap-token; do
        [ "$(stat -c %a "$DATA/$file")" = 600 ] || fail "$file can be read by others"
    done
    [ "$(stat -c %a "$DATA")" = 700 ] || fail "the data folder can be read by others"
    status_tells
    import_starts_a_worker
    ok fractal down
    assert_nothing_left
    data_stays "$line"
}

second_up_is_a_no_op() {
    local before begin took
    before=$(processes) begin=$(now_ms)
    [ -n "$before" ] || fail "nothing runs"
    ok "${UP[@]}"
    took=$(($(now_ms) - begin))
    echo "second up: $took ms"
    [ $took -lt 3000 ] || fail "a second up takes $took ms"
    [ "$(processes)" = "$before" ] || fail "a second up changes the processes"
    has "$ERR" "already running"
    [ "$(curl_line)" = "$1" ] || fail "another curl line"
}

status_tells() {
    local name
    ok fractal status
    for name in redis tenant slicer scheduler-0 worker-$BUNDLED-0 gateway-0; do
        grep -qE "^$name +[0-9]+ +ready " <<<"$OUT" || fail "$name is not ready"
    done
    ok fractal models
    has "$OUT" $BUNDLED
    ok fractal logs worker
    has "$OUT" ready
}

import_starts_a_worker() {
    ok fractal import "$ROOT/models/$BUNDLED" --name second --dtype f16
    ok fractal chat --model second "Call me Ishmael."
    [ "$(tr -d '[:space:]' <<<"$OUT" | wc -c)" -gt 10 ] || fail "the second model says nothing"
}

# data_stays CURL_LINE: after `down`, the same key and models.
data_stays() {
    ok "${UP[@]}" --quiet
    [ "$(curl_line)" = "$1" ] || fail "another curl line"
    assert_streams "$1"
    ok fractal down
    assert_nothing_left
    ok fractal down
    has "$ERR" "nothing is running"
}

port_in_use() {
    checkout
    hold "$PORT"
    refused "${UP[@]}"
    has "$ERR" "port $PORT is in use by process $HELD"
    has "$ERR" "--port"
    none_left || fail "something runs"
    end_child "$HELD"
    checkout
    hold $((BASE + 2))
    refused "${UP[@]}"
    has "$ERR" "port $((BASE + 2)) is in use by process $HELD"
    has "$ERR" "--base-port"
    assert_nothing_left
    end_child "$HELD"
}

# A PATH that has everything but Redis.
redis_missing() {
    local folder tools=$WORK/tools
    checkout
    mkdir "$tools"
    for folder in /usr/local/bin /usr/bin /bin /usr/sbin /sbin; do
        ln -s "$folder"/* "$tools" 2>/dev/null || true # the first of a name stays
    done
    rm -f "$tools"/redis*
    refused env PATH="$tools" "${UP[@]}"
    has "$ERR" "redis-server is not installed"
    has "$ERR" "apt-get install redis-server"
    assert_nothing_left
}

policy() { cat /usr/sbin/policy-rc.d 2>/dev/null || echo none; }

# dpkg-query knows nothing, and apt-get fails.
packages_that_cannot_be_installed() {
    local name before fakes=$WORK/fakes
    checkout
    mkdir "$fakes"
    for name in dpkg-query apt-get sudo; do
        # shellcheck disable=SC2016
        printf '#!/bin/sh\necho "$0 fails" >&2\nexit 1\n' >"$fakes/$name"
        chmod 755 "$fakes/$name"
    done
    before=$(policy)
    refused env PATH="$fakes:$PATH" "${UP[@]}"
    has "$ERR" libgrpc-dev
    has "$ERR" "remedy:"
    [ "$(policy)" = "$before" ] || fail "policy-rc.d has changed"
    assert_nothing_left
}

said() { grep -qF "$1" "$WORK/err"; }

# A PATH whose setsid stops the scheduler before it starts the gateway: the first answer waits.
held_scheduler() {
    local fakes=$WORK/held
    [ -d "$fakes" ] || mkdir "$fakes"
    cat >"$fakes/setsid" <<EOF
#!/bin/sh
case "\$*" in *fractal-gateway) kill -STOP \$(cut -d' ' -f1 "$DATA/run/scheduler-0.pid") ;; esac
exec $(command -v setsid) "\$@"
EOF
    chmod 755 "$fakes/setsid"
    echo "$fakes:$PATH"
}

# interrupt STEP: Ctrl-C when `up` says it is there.
interrupt() {
    local up path=$PATH status=0
    checkout
    [ "$1" != 'a first answer' ] || path=$(held_scheduler)
    : >"$WORK/err"
    child env PATH="$path" "${UP[@]}" >"$WORK/out" 2>"$WORK/err"
    up=$!
    within $STEP_S said "$1"
    kill -INT -- "-$up"
    [ "$path" = "$PATH" ] || kill -CONT "$(cut -d' ' -f1 "$DATA/run/scheduler-0.pid")"
    wait $up || status=$?
    OUT=$(<"$WORK/out") ERR=$(<"$WORK/err")
    [ $status -eq 130 ] || fail "interrupted at '$1' it ends with $status"
    assert_nothing_left
}

interrupted_up() {
    local step
    for step in 'building' 'starting Redis' 'importing' 'starting scheduler' 'a first answer'; do
        interrupt "$step"
    done
}

a_stale_pid_file_harms_nobody() {
    local innocent
    checkout
    child sleep $STEP_S
    innocent=$!
    mkdir "$DATA/run"
    echo "$innocent 1" >"$DATA/run/gateway-0.pid"
    ok fractal down
    sleep 0.2
    kill -0 "$innocent" 2>/dev/null || fail "down ended what it did not start"
    end_child "$innocent"
}

two_ups_at_once() {
    local first second codes=(0 0)
    checkout
    child "${UP[@]}" --quiet >/dev/null 2>"$WORK/first"
    first=$!
    child "${UP[@]}" --quiet >/dev/null 2>"$WORK/second"
    second=$!
    wait $first || codes[0]=$?
    wait $second || codes[1]=$?
    case ${codes[*]} in
        '0 1') has "$(<"$WORK/second")" "another ./fractal" ;;
        '1 0') has "$(<"$WORK/first")" "another ./fractal" ;;
        *) fail "they end with ${codes[*]}: $(<"$WORK/first") $(<"$WORK/second")" ;;
    esac
    ok fractal down
    assert_nothing_left
}

for test in up_down_up port_in_use redis_missing packages_that_cannot_be_installed \
    interrupted_up a_stale_pid_file_harms_nobody two_ups_at_once; do
    echo "[ RUN  ] $test"
    begin=$(now_ms)
    $test
    echo "[  OK  ] $test $(($(now_ms) - begin)) ms"
done
