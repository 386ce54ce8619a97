#!/usr/bin/env bash
# tools/oracle/clients.sh: the real clients against a suite of this checkout: openai for JavaScript
# (6 and 7) and Python, @grpc/grpc-js by reflection over plaintext and mTLS, curl, and the examples
# in Python and JavaScript. Fetches pinned packages from npm and PyPI into build/oracle; needs node,
# npm, python3, curl, openssl and the network. Not part of ./fractal test, which needs none of them.
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
WORK=$ROOT/build/oracle/clients
TREE=$WORK/tree # a copy of what node runs, with the packages above it
CLIENTS=$TREE/tools/oracle/clients
PORT=15000 BASE_PORT=15050
MODEL=fractal-tiny-moe
FAILED=0

fetch() {
    mkdir -p "$WORK"
    if [ ! -x "$WORK/venv/bin/python" ]; then
        python3 -m venv "$WORK/venv"
        "$WORK/venv/bin/pip" install -q openai==3.57.0 -r "$ROOT/examples/python/requirements.txt"
    fi
    mkdir -p "$TREE/tools/oracle"
    rm -rf "$TREE/proto" "$TREE/examples" "$TREE/tools/oracle/clients"
    cp -r "$ROOT/proto" "$ROOT/examples" "$TREE"
    cp -r "$ROOT/tools/oracle/clients" "$TREE/tools/oracle"
    if [ ! -d "$TREE/node_modules" ]; then
        cp "$ROOT/tools/oracle/clients/package.json" "$TREE"
        npm install --silent --no-package-lock --prefix "$TREE"
    fi
}

fractal() { "$ROOT/fractal" "$1" --data "$DATA" "${@:2}"; }

suite_up() { fractal up --port $PORT --base-port $BASE_PORT --quiet >/dev/null; }

# check NAME COMMAND...: its output, and whether it was well.
check() {
    local name=$1
    shift
    echo "$name"
    "$@" || FAILED=$((FAILED + 1))
}

limited_key() {
    fractal keys create --tenant default --label limited --rpm 2 | grep -oE 'fx-[0-9a-f]{64}'
}

# example COMMAND...: one answer, and one refusal by its status.
example() {
    local answer
    answer=$("$@" "127.0.0.1:$BASE_PORT" "$DATA/api-key" $MODEL 'It is a truth') &&
        [ -n "$answer" ] && echo "  ok    an answer: ${answer:0:40}..." || return 1
    ! answer=$("$@" "127.0.0.1:$BASE_PORT" "$DATA/api-key" nobody hi 2>&1) &&
        [[ $answer == NOT_FOUND:* ]] && echo "  ok    $answer"
}

curl_stream() {
    local out
    out=$(curl -sN "http://127.0.0.1:$PORT/v1/chat/completions" \
        -H "Authorization: Bearer $(<"$DATA/api-key")" -H 'Content-Type: application/json' -d \
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

plain_checks() {
    local key limited admin=127.0.0.1:$((BASE_PORT + 1000)) url=http://127.0.0.1:$PORT/v1 package
    key=$(<"$DATA/api-key")
    for package in openai6 openai7; do
        limited=$(limited_key)
        check "npm $package" node "$CLIENTS/openai.mjs" $package "$url" "$key" "$limited" $admin $MODEL
    done
    limited=$(limited_key)
    check "PyPI openai" "$WORK/venv/bin/python" "$ROOT/tools/oracle/clients/openai_check.py" "$url" "$key" "$limited" $MODEL
    check "gRPC" node "$CLIENTS/grpc.mjs" 127.0.0.1:$BASE_PORT "$key" $MODEL $admin
    check "curl" curl_stream
    check "examples/python" example "$WORK/venv/bin/python" "$ROOT/examples/python/chat.py"
    check "examples/javascript" example node "$TREE/examples/javascript/chat.js"
    check "examples/c" example "$ROOT/build/release/bin/fractal-example-chat"
}

tls_checks() {
    certificates
    export FX_TLS_CA=$DATA/tls/ca.pem FX_TLS_CERT=$DATA/tls/server.pem FX_TLS_KEY=$DATA/tls/server.key
    suite_up
    check "gRPC over mTLS" node "$CLIENTS/grpc.mjs" 127.0.0.1:$BASE_PORT "$(<"$DATA/api-key")" $MODEL \
        127.0.0.1:$((BASE_PORT + 1000)) "$DATA/tls"
}

main() {
    fetch
    cd "$ROOT"
    DATA=$(mktemp -d /tmp/fx-clients-XXXXXX)
    trap 'fractal down >/dev/null 2>&1; rm -rf "$DATA"' EXIT
    suite_up
    cmake --build "$ROOT/build/release" --target fractal-example-chat >/dev/null
    plain_checks
    fractal down >/dev/null
    tls_checks
    [ $FAILED -eq 0 ] && echo "all clients: as they expect" && return
    echo "$FAILED of the clients found something wrong" >&2
    return 1
}

main "$@"
