#!/usr/bin/env bash
# tools/oracle/clients.sh: the real clients against a suite of this checkout: openai for JavaScript
# (6 and 7) and Python, @grpc/grpc-js by reflection over plaintext and mTLS, curl, chromium on the
# telemetry stream, and the examples in C, Python and JavaScript, also while their gateway ends. ./fractal test clients builds what
# it runs. Pinned packages come from the registries that npm and pip are set to, into build/clients,
# once.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
HERE=$ROOT/tools/oracle/clients
BIN=${FRACTAL_BUILD:-$ROOT/build/release}/bin
CACHE=$ROOT/build/clients
TREE=$CACHE/tree # a copy of what node runs, with the packages above it
CLIENTS=$TREE/tools/oracle/clients
MODEL=fractal-tiny-moe
PORTS=20 FETCH_S=120
PASSED=0 FAILED=0 NOT_RUN='' MISSED=0 MISSED_MAX=20
for name in "${!FX_@}"; do unset "$name"; done

fetch_python() {
    python3 -m venv "$CACHE/venv" &&
        timeout $FETCH_S "$CACHE/venv/bin/pip" install --timeout 20 -r "$HERE/requirements.txt" \
            -r "$ROOT/examples/python/requirements.txt"
}

fetch_javascript() {
    mkdir "$TREE" && cp "$HERE/package.json" "$TREE" &&
        timeout $FETCH_S npm install --no-package-lock --ignore-scripts --no-audit --no-fund \
            --fetch-retry-maxtimeout 10000 --prefix "$TREE"
}

# fetch WHERE FOLDER VERSIONS_FILE...: what was fetched stays while no version changes. Where the
# registry does not answer, its clients are not run, which the last line says.
fetch() {
    local where=$1 folder=$2 log=$CACHE/$1.log versions
    shift 2
    versions=$(cat "$@")
    mkdir -p "$CACHE"
    [ "$(cat "$folder/versions" 2>/dev/null)" != "$versions" ] || return 0
    rm -rf "$folder"
    if "fetch_$where" >"$log" 2>&1; then
        printf '%s\n' "$versions" >"$folder/versions"
        return 0
    fi
    tail -n 5 "$log" >&2
    echo "not run: the clients in $where, whose packages can't be fetched (the log: $log)" >&2
    NOT_RUN+=", not run: the clients in $where, whose packages can't be fetched"
    return 1
}

fetch_all() {
    PYTHON=no JAVASCRIPT=no
    if fetch python "$CACHE/venv" "$HERE/requirements.txt" \
        "$ROOT/examples/python/requirements.txt"; then PYTHON=yes; fi
    if fetch javascript "$TREE" "$HERE/package.json"; then JAVASCRIPT=yes; fi
    mkdir -p "$TREE/tools/oracle"
    rm -rf "$TREE/proto" "$TREE/examples" "$CLIENTS"
    cp -r "$ROOT/proto" "$ROOT/examples" "$TREE"
    cp -r "$HERE" "$TREE/tools/oracle"
}

listening() { (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Ports from BASE_PORT, admin ports 1000 above, and the HTTP ports.
choose_ports() {
    local i
    for ((BASE_PORT = 15000 + $$ % 200 * PORTS; BASE_PORT < 31000; BASE_PORT += PORTS)); do
        for ((i = 0; i < PORTS; i++)); do
            if listening $((BASE_PORT + i)) || listening $((BASE_PORT + 1000 + i)); then
                continue 2
            fi
        done
        PORT=$((BASE_PORT + PORTS - 2)) PAGE_PORT=$((BASE_PORT + PORTS - 3)) # a second gateway's: + 1
        return
    done
    echo "FAILED: no free ports" >&2
    exit 1
}

fractal() { "$ROOT/fractal" "$1" --data "$DATA" "${@:2}"; }

suite_up() { fractal up --port $PORT --base-port $BASE_PORT --quiet "$@" >/dev/null; }

# check NAME COMMAND...: its output, and whether it was well.
check() {
    local name=$1
    shift
    echo "$name"
    if "$@"; then PASSED=$((PASSED + 1)); else FAILED=$((FAILED + 1)); fi
}

limited_key() {
    fractal keys create --tenant default --label limited --rpm 2 | grep -oE 'fx-[0-9a-f]{64}'
}

# example COMMAND...: one answer, and one refusal by its status.
example() {
    local answer
    answer=$("$@" "$GRPC" "$DATA/api-key" $MODEL 'It is a truth') &&
        [ -n "$answer" ] && echo "  ok    an answer: ${answer:0:40}..." || return 1
    ! answer=$("$@" "$GRPC" "$DATA/api-key" nobody hi 2>&1) &&
        [[ $answer == NOT_FOUND:* ]] && echo "  ok    $answer"
}

curl_stream() {
    local out
    out=$(curl -sN "$URL/chat/completions" \
        -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d \
        '{"model":"'$MODEL'","stream":true,"max_tokens":8,"messages":[{"role":"user","content":"hi"}]}')
    [[ $out == 'data: {'* && $out == *'data: [DONE]' ]] && echo "  ok    a stream, [DONE] last"
}

certificates() {
    local name
    mkdir -p "$DATA/tls"
    cd "$DATA/tls"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key \
        -out ca.pem -days 2 -subj /CN=ca 2>/dev/null
    for name in server client; do
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $name.key \
            -out $name.csr -subj /CN=$name 2>/dev/null
        openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $name.pem \
            -days 2 -extfile <(echo subjectAltName=DNS:localhost,IP:127.0.0.1) 2>/dev/null
    done
    cd "$ROOT"
}

python_checks() {
    local python=$CACHE/venv/bin/python
    check "openai of PyPI" "$python" "$HERE/openai_check.py" "$URL" "$KEY" "$(limited_key)" $MODEL
    check "examples/python" example "$python" "$ROOT/examples/python/chat.py"
}

javascript_checks() {
    local package
    for package in openai6 openai7; do
        check "$package of npm" node "$CLIENTS/openai.mjs" $package "$URL" "$KEY" "$(limited_key)" \
            "$ADMIN" $MODEL
    done
    check "@grpc/grpc-js" node "$CLIENTS/grpc.mjs" "$GRPC" "$KEY" $MODEL "$ADMIN"
    check "chromium" node "$CLIENTS/browser.mjs" "$(command -v chromium)" "http://127.0.0.1:$PORT" \
        "$KEY" $MODEL $PAGE_PORT "kill -9 \$(cut -d ' ' -f 1 '$DATA/run/gateway-0.pid')" \
        "'$ROOT/fractal' up --data '$DATA' --port $PORT --base-port $BASE_PORT --quiet"
    check "examples/javascript" example node "$TREE/examples/javascript/chat.js"
}

plain_checks() {
    check "curl" curl_stream
    check "examples/c" example "$BIN/fractal-example-chat"
    [ $PYTHON = no ] || python_checks
    [ $JAVASCRIPT = no ] || javascript_checks
}

# The official client meets a generation that no worker is left for.
lost_checks() {
    local pid
    [ $JAVASCRIPT = yes ] || return 0
    fractal down >/dev/null 2>&1
    FX_RESUME_DEADLINE_MS=2000 suite_up
    read -r pid _ <"$(echo "$DATA"/run/worker-*.pid)"
    check "openai7 of npm, its worker killed" node "$CLIENTS/worker_lost.mjs" openai7 "$URL" "$KEY" \
        $MODEL "$pid"
}

# comes_back SIGNAL COMMAND...: an example whose gateway ends in the middle has the whole answer. Where
# all of it was there before (a busy machine), once more.
comes_back() {
    local signal=$1 other=127.0.0.1:$((BASE_PORT + 10)) out=$DATA/answer whole half pid example status=0
    shift
    whole=$("$@" "$other" "$DATA/api-key" $MODEL 'It is a truth' 2>"$out.usage") || return 1
    : >"$out"
    "$@" "$GRPC,$other" "$DATA/api-key" $MODEL 'It is a truth' >"$out" 2>"$out.errors" &
    example=$!
    while [ ! -s "$out" ] && kill -0 $example 2>/dev/null; do sleep 0.01; done
    read -r pid _ <"$DATA/run/gateway-0.pid"
    kill "-$signal" "$pid"
    half=$(<"$out")
    wait $example || status=$?
    suite_up --gateways 2 # starts it again
    if [ $status != 0 ] || [ "$(<"$out")" != "$whole" ] ||
        [ "$(tail -n 1 "$out.usage")" != "$(tail -n 1 "$out.errors")" ]; then # gRPC may log before
        echo "  WRONG $signal: '$half' and then '$(<"$out")' for '$whole'"
        cat "$out.errors"
        return 1
    fi
    if [ ${#half} -ge ${#whole} ]; then
        MISSED=$((MISSED + 1))
        [ $MISSED -lt $MISSED_MAX ] && comes_back "$signal" "$@"
        return
    fi
    echo "  ok    $signal after ${#half} of ${#whole} characters"
}

both_signals() { comes_back KILL "$@" && comes_back TERM "$@"; }

# The examples, between two gateways: the one that answers is killed, or told to end.
comeback_checks() {
    local -x FX_BACKEND=ref FX_DRAIN_MS=50 # so slow that it is in the middle
    fractal down >/dev/null 2>&1
    suite_up --gateways 2
    check "examples/c, its gateway ended" both_signals "$BIN/fractal-example-chat"
    [ $PYTHON = no ] || check "examples/python, its gateway ended" both_signals \
        "$CACHE/venv/bin/python" "$ROOT/examples/python/chat.py"
    [ $JAVASCRIPT = no ] || check "examples/javascript, its gateway ended" both_signals \
        node "$TREE/examples/javascript/chat.js"
}

tls_checks() {
    [ $JAVASCRIPT = yes ] || return 0
    fractal down >/dev/null 2>&1
    certificates
    export FX_TLS_CA=$DATA/tls/ca.pem FX_TLS_CERT=$DATA/tls/server.pem FX_TLS_KEY=$DATA/tls/server.key
    suite_up
    check "@grpc/grpc-js over mTLS" node "$CLIENTS/grpc.mjs" "$GRPC" "$KEY" $MODEL "$ADMIN" "$DATA/tls"
}

main() {
    fetch_all
    choose_ports
    cd "$ROOT"
    DATA=$(mktemp -d /tmp/fx-clients-XXXXXX)
    trap 'fractal down >/dev/null 2>&1; rm -rf "$DATA"' EXIT
    export FX_CORS_ORIGINS=http://127.0.0.1:$PAGE_PORT
    suite_up
    KEY=$(<"$DATA/api-key")
    URL=http://127.0.0.1:$PORT/v1 GRPC=127.0.0.1:$BASE_PORT ADMIN=127.0.0.1:$((BASE_PORT + 1000))
    plain_checks
    lost_checks
    comeback_checks
    tls_checks
    echo "clients: $PASSED passed, $FAILED failed$NOT_RUN"
    [ $FAILED -eq 0 ]
}

main "$@"
