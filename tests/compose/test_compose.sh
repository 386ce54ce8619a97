#!/usr/bin/env bash
# The suite in containers, as compose.yaml starts it, on a real engine: built, up, answers through the
# published port, scaled, a worker and Redis lost in mid-stream, and taken down without a trace. Every text is
# compared with what the undisturbed suite said.
#
# From ./fractal test compose: COMPOSE (the command), CROWD (bin/fractal-crowd), WORK (a folder).
# COMPOSE_IDLE_S: how long services are idle before their memory is read (5; 60 for the record).
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
PROJECT=fxtest$$
STREAMS=24 SCALE_TOKENS=16 LONG_STREAMS=8 LONG_TOKENS=120 # they fill two workers
RATIO_MIN=2.2
PASSED=0 FAILED=0
FAILURES=()

# A port of this machine that nobody listens on.
free_port() {
    local port
    while port=$((20000 + RANDOM % 10000)) && (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo "$port"
}

export FRACTAL_HTTP_PORT FRACTAL_GRPC_PORT FX_API_KEY=''
FRACTAL_HTTP_PORT=$(free_port)
FRACTAL_GRPC_PORT=$(free_port)
export FRACTAL_TAG=test FRACTAL_PREFIX='' FRACTAL_BIND=127.0.0.1
# Decoding must be what takes the time: plain kernels, half a core a worker.
export FRACTAL_WORKER_CPUS=0.5 FRACTAL_WORKER_THREADS=1 FRACTAL_WORKER_SLOTS=4 FRACTAL_WORKER_BACKEND=ref
URL=127.0.0.1:$FRACTAL_HTTP_PORT

compose() { (cd "$ROOT" && "$COMPOSE" -p "$PROJECT" "$@" </dev/null); }

say() { printf '  %s\n' "$*"; }

# check NAME FUNCTION: one row of the result.
check() {
    local begin=$SECONDS status
    set +e # bash forgets -e in what a condition runs
    (set -e; "$2") >"$WORK/$2.log" 2>&1
    status=$?
    set -e
    if [ $status -eq 0 ]; then
        PASSED=$((PASSED + 1))
        printf 'ok    %s (%s s)%s\n' "$1" $((SECONDS - begin)) "$(sed -n 's/^figure:/:/p' "$WORK/$2.log" | tr '\n' ' ')"
    else
        FAILED=$((FAILED + 1))
        FAILURES+=("$1")
        printf 'FAIL  %s\n' "$1"
        tail -n 25 "$WORK/$2.log" | sed 's/^/      /'
        compose ps 2>&1 | sed 's/^/      /' || true
    fi
}

figure() { printf 'figure: %s\n' "$*"; }

fail() {
    printf '%s\n' "$*"
    return 1
}

# await SECONDS WHAT COMMAND...
await() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "$what: not within the time" || return 1
        sleep 0.2
    done
}

# ids SERVICE: its running containers.
ids() {
    docker ps -q --no-trunc --filter "label=com.docker.compose.project=$PROJECT" \
        --filter "label=com.docker.compose.service=$1"
}

is_healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$1")" = healthy ]; }

# healthy SERVICE COUNT: so many run, and all are well.
healthy() {
    local id
    [ "$(ids "$1" | wc -l)" -eq "$2" ] || return 1
    for id in $(ids "$1"); do is_healthy "$id" || return 1; done
}

# -- the rows --

builds() {
    local name
    BASE=$(sed -n 's/^FRACTAL_BASE=//p' "$ROOT/.env")
    "$ROOT/tests/compose/base_image.sh" "$BASE" "$WORK"
    compose build
    for name in gateway tenant scheduler slicer worker cli redis; do
        figure "$name $(docker image inspect -f '{{.Size}}' "fractal-$name:$FRACTAL_TAG" | awk '{ printf "%.1f MB", $1 / 1e6 }')"
    done
}

comes_up() {
    compose up -d
    for service in redis tenant scheduler slicer worker gateway; do
        await 60 "$service healthy" healthy "$service" 1
    done
    for service in redis tenant scheduler slicer worker; do
        ! docker port "$(ids $service)" | grep . || fail "$service is published"
    done
}

makes_a_key() {
    compose run --rm cli keys create --tenant default >"$WORK/key"
    grep -qxE 'fx-[0-9a-f]{64}' <(tr -d '\r' <"$WORK/key")
}

answers() {
    local status
    status=$(curl -s -o "$WORK/answer" -w '%{http_code}' "http://$URL/v1/completions" \
        -H "Authorization: Bearer $FX_API_KEY" -H 'Content-Type: application/json' \
        -d '{"model":"fractal-tiny-moe","prompt":"Call me Ishmael.","max_tokens":16,"temperature":0}')
    [ "$status" = 200 ] || fail "$status $(cat "$WORK/answer")"
    status=$(curl -s -o "$WORK/answer" -w '%{http_code}' "http://$URL/v1/models")
    [ "$status" = 401 ] || fail "without a key: $status $(cat "$WORK/answer")"
    "$CROWD" record "$URL" "$WORK/short.json" --streams $STREAMS --tokens $SCALE_TOKENS --answer-seconds 180
    "$CROWD" record "$URL" "$WORK/long.json" --streams $LONG_STREAMS --tokens $LONG_TOKENS --answer-seconds 300
}

scale_to() {
    compose up -d --no-recreate --scale worker="$1"
    await 60 "$1 workers" healthy worker "$1"
}

# tokens_per_s WORKERS: what 24 streams get.
tokens_per_s() {
    scale_to "$1" >&2
    "$CROWD" compare "$URL" "$WORK/short.json" --streams $STREAMS --once --answer-seconds 180 |
        tail -n 1 | jq .tokens_per_s
}

# Turn and turn about; the middle of three.
scales() {
    local one=() three=() i ratio
    for i in 1 2 3; do
        one+=("$(tokens_per_s 1)")
        three+=("$(tokens_per_s 3)")
        echo "$i: 1 worker ${one[-1]}, 3 workers ${three[-1]} tokens/s"
    done
    ratio=$(jq -n "([$(IFS=,; echo "${three[*]}")] | sort)[1] / ([$(IFS=,; echo "${one[*]}")] | sort)[1] * 100 | round / 100")
    figure "3 workers / 1 worker $ratio (${three[*]} / ${one[*]} tokens/s)"
    jq -en "$ratio >= $RATIO_MIN" || fail "3 workers give $ratio of one, want $RATIO_MIN"
}

# disturbed COMMAND...: every recorded long stream runs while it is done; none may fail or differ.
disturbed() {
    local crowd status=0
    "$CROWD" compare "$URL" "$WORK/long.json" --streams $LONG_STREAMS --once --answer-seconds 300 >"$WORK/crowd.out" 2>&1 &
    crowd=$!
    await 60 "streams" grep -qx begun "$WORK/crowd.out"
    "$@"
    kill -0 $crowd || fail "the streams ended before anything happened"
    wait $crowd || status=$?
    cat "$WORK/crowd.out"
    figure "$(tail -n 1 "$WORK/crowd.out" | jq -r '"\(.streams) streams, \(.failed) failed, \(.differing) differing, longest silence \(.silence_max_ms) ms"')"
    [ $status -eq 0 ]
}

# The one that holds most of the work, or any: none knows which.
kill_a_worker() { docker kill "$(ids worker | head -n 1)"; }

survives_a_killed_worker() {
    scale_to 2
    disturbed kill_a_worker
    compose up -d --no-recreate --scale worker=1
}

restart_redis() { compose restart redis; }

survives_redis() { disturbed restart_redis; }

# charged SERVICE: bytes of its control group less what the kernel may drop at once (v1 or v2).
charged() {
    local id base
    id=$(ids "$1" | head -n 1)
    for base in "/sys/fs/cgroup/memory/docker/$id" "/sys/fs/cgroup/docker/$id" "/sys/fs/cgroup/system.slice/docker-$id.scope"; do
        [ -d "$base" ] || continue
        awk 'FNR == 1 && NF == 1 { used = $1 } $1 == "total_inactive_file" || $1 == "inactive_file" { file = $2 }
            END { printf "%.1f", (used - file) / 1e6 }' \
            "$(ls "$base/memory.usage_in_bytes" "$base/memory.current" 2>/dev/null)" "$base/memory.stat"
        return
    done
}

idles() {
    local service id
    sleep "${COMPOSE_IDLE_S:-5}"
    for service in gateway tenant scheduler slicer worker redis; do
        id=$(docker inspect -f '{{.State.Pid}}' "$(ids $service | head -n 1)")
        figure "$service $(charged $service) MB charged, $(awk '/^RssAnon/ { printf "%.1f", $2 * 1024 / 1e6 }' "/proc/$id/status") MB anonymous"
    done
}

leaves_nothing() {
    local kind left
    compose down -v --remove-orphans
    for kind in "ps -aq" "volume ls -q" "network ls -q"; do
        # shellcheck disable=SC2086 # two words
        left=$(docker $kind --filter "label=com.docker.compose.project=$PROJECT")
        [ -z "$left" ] || fail "docker $kind: $left"
    done
}

mkdir -p "$WORK"
trap 'compose down -v --remove-orphans >/dev/null 2>&1' EXIT
check "the images build" builds
check "up: every service is healthy, only the gateway is published" comes_up
check "a key by the CLI's image" makes_a_key
FX_API_KEY=$(tr -d '\r\n' <"$WORK/key")
check "answers through the published port" answers
check "idle memory" idles
check "--scale worker=3" scales
check "a worker container is killed in mid-stream" survives_a_killed_worker
check "Redis is restarted in mid-stream" survives_redis
check "down -v leaves nothing" leaves_nothing
printf 'compose: %s passed, %s failed%s\n' $PASSED $FAILED "${FAILURES[*]:+: ${FAILURES[*]}}"
[ $FAILED -eq 0 ]
