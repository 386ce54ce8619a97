# shellcheck shell=bash
# What the scenarios share. Each is a program of its own over one installed release; it prints what it
# found, and ends with 1 where something is not as it must be. ./fractal test k8s runs them all.
# From the caller: KUBECONFIG; K8S_NAMESPACE, the release's namespace; K8S_VALUES, further value files;
# K8S_WORK, a folder for what scenarios leave to each other; K8S_PREFIX and K8S_TAG, of the images.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
HERE=$ROOT/tests/k8s
CHART=$ROOT/helm/fractal
RELEASE=fractal
NS=${K8S_NAMESPACE:-fractal-test}
CLIENTS=$NS-clients # clients are not in the release's namespace, as in life
WORK=${K8S_WORK:?a folder; ./fractal test k8s sets it}
SCENARIO=$(basename "$0" .sh)
HELM_TIMEOUT=${K8S_TIMEOUT:-5m}
STREAM_TOKENS=600 # of each recorded stream; a context of the bundled model has 1024

say() { printf '  %s\n' "$*"; }

fail() {
    printf '%s: %s\n' "$SCENARIO" "$*" >&2
    exit 1
}

# figure TEXT: printed, and kept for the summary.
figure() {
    say "$*"
    printf '%s: %s\n' "$SCENARIO" "$*" >>"$WORK/figures"
}

k() { kubectl -n "$NS" "$@"; }
kc() { kubectl -n "$CLIENTS" "$@"; }

# await SECONDS WHAT COMMAND...: until it succeeds.
await() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || fail "$what: not within the time"
        sleep 0.2
    done
}

now_ms() { date +%s%3N; }

# -- pods --

selector() { printf 'app.kubernetes.io/instance=%s,app.kubernetes.io/component=%s' "$RELEASE" "$1"; }

# pods COMPONENT: names of those that are not ending.
pods() {
    k get pods -l "$(selector "$1")" -o json |
        jq -r '.items[] | select(.metadata.deletionTimestamp == null) | .metadata.name'
}

pod() { pods "$1" | head -n 1; }

# ready_count COMPONENT
ready_count() {
    k get pods -l "$(selector "$1")" -o json | jq '[.items[]
        | select(.metadata.deletionTimestamp == null)
        | select(any(.status.conditions[]?; .type == "Ready" and .status == "True"))] | length'
}

has_ready() { [ "$(ready_count "$1")" -eq "$2" ]; }

# has_pods COMPONENT N: those that end too.
has_pods() { [ "$(k get pods -l "$(selector "$1")" -o json | jq '.items | length')" = "$2" ]; }

# pod_ended POD, one of the clients', well or not.
pod_ended() { [[ $(kc get pod "$1" -o jsonpath='{.status.phase}') =~ ^(Succeeded|Failed)$ ]]; }

# gone UID: no such pod; one of a StatefulSet comes again under its name.
gone() { ! k get pods -o jsonpath='{.items[*].metadata.uid}' | grep -qF "$1"; }

# shellcheck disable=SC2034 # of memory.sh
COMPONENTS=(gateway tenant scheduler slicer worker redis)
declare -A ADMIN=([gateway]=51050 [tenant]=51051 [scheduler]=51052 [slicer]=51053 [worker]=51054)

# mb BYTES
mb() { awk -v n="$1" 'BEGIN { printf "%.1f", n / 1e6 }'; }

# metric POD COMPONENT NAME: its value, summed over labels; through the API server.
metric() {
    k get --raw "/api/v1/namespaces/$NS/pods/$1:${ADMIN[$2]}/proxy/metrics" |
        awk -v name="$3" '$1 ~ "^" name "($|[{])" { sum += $2; found = 1 } END { if (!found) exit 1; print sum }'
}

# -- the release --

# values: the options that every install and upgrade of the release gets.
values() {
    printf -- '%s\n' --values "$HERE/values.yaml" --set "image.prefix=${K8S_PREFIX-}" \
        --set-string "image.tag=$K8S_TAG"
    local file # by spaces
    for file in ${K8S_VALUES:-}; do printf -- '--values\n%s\n' "$file"; done
}

# image NAME
image() { printf '%sfractal-%s:%s' "${K8S_PREFIX-}" "$1" "$K8S_TAG"; }

# workload COMPONENT: its Deployment or StatefulSet.
workload() { k get deployment,statefulset -l "$(selector "$1")" -o name | head -n 1; }

# release install|upgrade OPTION...
release() {
    local options
    mapfile -t options < <(values)
    helm "$1" "$RELEASE" "$CHART" --namespace "$NS" --wait --timeout "$HELM_TIMEOUT" \
        "${options[@]}" "${@:2}" >"$WORK/helm.log" 2>&1 || {
        k get pods >&2
        fail "helm $1: $(tail -n 5 "$WORK/helm.log")"
    }
}

# -- clients --

node_address() {
    kubectl get nodes -o json | jq -r '[.items[].status.addresses[] | select(.type == "InternalIP")][0].address'
}

# node_port NAME: of the gateway's port of that name.
node_port() {
    k get service -l "$(selector gateway)" -o json |
        jq -re --arg name "$1" '[.items[].spec.ports[] | select(.name == $name and .nodePort) | .nodePort][0]'
}

gateway_http() { printf '%s:%s' "$(node_address)" "$(node_port http)"; }

crowd_exec() { kc exec -i crowd -- /fractal-crowd "$@"; }

# crowd_record: what an undisturbed release answers, 8 streams and 16 requests.
crowd_record() {
    crowd_exec record "$(gateway_http)" /data/texts.json --streams 8 --tokens "$STREAM_TOKENS" \
        --requests 16 --request-tokens 8 --answer-seconds 180 </dev/null >"$WORK/record.json" ||
        fail "an undisturbed run: $(cat "$WORK/record.json")"
    say "recorded: $(tail -n 1 "$WORK/record.json")"
}

# crowd_begin OPTION...: clients in the background, until crowd_end. All their streams run when it
# returns.
crowd_begin() {
    rm -f "$WORK/crowd.in"
    mkfifo "$WORK/crowd.in"
    crowd_exec compare "$(gateway_http)" /data/texts.json --answer-seconds 180 "$@" \
        <"$WORK/crowd.in" >"$WORK/crowd.out" 2>"$WORK/crowd.err" &
    CROWD=$!
    exec 9>"$WORK/crowd.in"
    await 60 "8 streams" grep -qx begun "$WORK/crowd.out"
}

crowd_tokens() { awk '$1 == "tokens" { n = $2 } END { print n + 0 }' "$WORK/crowd.out"; }

crowd_has() { [ "$(crowd_tokens)" -ge "$1" ]; }

# crowd_more SECONDS N: awaits so many further tokens.
crowd_more() { await "$1" "$2 more tokens" crowd_has $(($(crowd_tokens) + $2)); }

# crowd_end: waits for what runs; every answer must be there, and as recorded. Its figures are CROWD_JSON.
crowd_end() {
    local status=0
    exec 9>&-
    wait "$CROWD" || status=$?
    CROWD_JSON=$(tail -n 1 "$WORK/crowd.out")
    [ $status -eq 0 ] || fail "clients: $(head -n 3 "$WORK/crowd.err") $CROWD_JSON"
}

# crowd_says NAME
crowd_says() { jq -r ".$1" <<<"$CROWD_JSON"; }

crowd_line() {
    jq -r '"\(.streams) streams, \(.requests) requests: \(.failed) failed, \(.differing) differing; " +
        "clients came back \(.came_back) times, asked again \(.asked_again) times; " +
        "longest silence \(.silence_max_ms / 1000 * 100 | round / 100) s"' <<<"$CROWD_JSON"
}
