#!/usr/bin/env bash
# Dashboard and alert rules against a real Prometheus that scrapes the real suite: every expression of the
# dashboard gives figures, every metric that dashboard and rules name is exported, and an alert fires when
# Redis is killed and ends when it is back. From ./fractal test monitoring: WORK, a folder.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
FILES=$ROOT/helm/fractal/files
PASSED=0 FAILED=0

# free_base COUNT: ports BASE..BASE+COUNT and a thousand above that nobody listens on.
free_base() {
    local base i
    while :; do
        base=$((20000 + RANDOM % 9000))
        for ((i = 0; i < $1; i++)); do
            (: <>"/dev/tcp/127.0.0.1/$((base + i))") 2>/dev/null && continue 2
            (: <>"/dev/tcp/127.0.0.1/$((base + i + 1000))") 2>/dev/null && continue 2
        done
        echo "$base"
        return
    done
}

BASE=$(free_base 40)
PROMETHEUS=127.0.0.1:$((BASE + 30))
suite() { "$ROOT/fractal" "$1" --data "$WORK/suite" "${@:2}"; }
DATA=$WORK/suite

check() {
    local status
    set +e # bash forgets -e in what a condition runs
    (set -e; "$2") >"$WORK/$2.log" 2>&1
    status=$?
    set -e
    if [ $status -eq 0 ]; then
        PASSED=$((PASSED + 1))
        printf 'ok    %s\n' "$1"
    else
        FAILED=$((FAILED + 1))
        printf 'FAIL  %s\n' "$1"
        tail -n 20 "$WORK/$2.log" | sed 's/^/      /'
    fi
}

await() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || { echo "not within the time: $*"; return 1; }
        sleep 0.2
    done
}

# -- the rows --

rules_are_right() {
    promtool check rules "$FILES/alerts.yaml"
    cp "$FILES/alerts.yaml" "$ROOT/tests/observability/test_alerts.yaml" "$WORK/"
    (cd "$WORK" && promtool test rules test_alerts.yaml)
    sed "s|/etc/prometheus/alerts.yaml|$WORK/alerts.yaml|" "$ROOT/docker/observability/prometheus.yml" >"$WORK/compose.yaml"
    promtool check config "$WORK/compose.yaml"
    local alert
    for alert in $(sed -n 's/^ *- alert: //p' "$FILES/alerts.yaml"); do
        grep -A1 "alertname: $alert\$" "$WORK/test_alerts.yaml" | grep -q exp_alerts || { echo "$alert: no test sees it fire"; return 1; }
        grep -q "alertname: $alert}" "$WORK/test_alerts.yaml" || { echo "$alert: no test sees it rest"; return 1; }
    done
}

metrics_are_valid() {
    local file
    for file in "$DATA"/run/*.admin; do
        curl -sf "http://127.0.0.1:$(<"$file")/metrics" >"$WORK/metrics"
        promtool check metrics <"$WORK/metrics"
    done
}

query() {
    curl -sf --data-urlencode "query=$1" "http://$PROMETHEUS/api/v1/query"
}

gives_figures() { [ "$(query "$1" | jq '.data.result | length')" -gt 0 ]; }

dashboard_gives_figures() {
    local expression
    jq -r '.. | .expr? // empty' "$FILES/dashboard.json" |
        sed "s/\\\$__rate_interval/10s/g; s/\\\$model/.*/g" >"$WORK/expressions"
    [ "$(wc -l <"$WORK/expressions")" -gt 40 ]
    while read -r expression; do
        await 15 gives_figures "$expression" || { echo "nothing: $expression"; return 1; }
    done <"$WORK/expressions"
}

# Certificates have figures only where there are any.
names_are_exported() {
    local name
    sed -n '/^## Metrics worth watching/,/^## Certificates/p' "$ROOT/docs/operations.md" |
        sed -E 's/(token|generation|queue)_seconds/&_bucket/g' >"$WORK/page"
    curl -sf "http://$PROMETHEUS/api/v1/label/__name__/values" | jq -r '.data[]' | sort -u >"$WORK/names"
    grep -ohE '\bfx_[a-z0-9_]+' "$FILES/dashboard.json" "$FILES/alerts.yaml" "$WORK/page" | grep -v '^fx_certificate_\|^fx_$' |
        sort -u >"$WORK/wanted"
    while read -r name; do
        grep -qx "$name" "$WORK/names" || { echo "nobody exports $name"; return 1; }
    done <"$WORK/wanted"
}

fires() {
    curl -sf "http://$PROMETHEUS/api/v1/alerts" |
        jq -e --arg name "$1" '.data.alerts[] | select(.labels.alertname == $name and .state == "firing")'
}

rests() { ! fires "$1"; }

an_alert_fires_and_ends() {
    local pid
    rests FractalRedisAway
    read -r pid _ <"$DATA/run/redis.pid" # and when it started
    kill -9 "$pid"
    await 30 fires FractalRedisAway
    suite up --quiet >/dev/null
    await 60 rests FractalRedisAway
}

# -- the stage --

prometheus_config() {
    local file
    echo 'global: {scrape_interval: 1s, evaluation_interval: 1s}'
    # Durations alone are shortened: a minute of waiting tells no more.
    sed -E 's/^( *for: ).*/\12s/' "$FILES/alerts.yaml" >"$WORK/rules.yaml"
    echo "rule_files: [$WORK/rules.yaml]"
    echo 'scrape_configs: [{job_name: fractal, static_configs: [{targets: ['
    for file in "$DATA"/run/*.admin; do echo "'127.0.0.1:$(<"$file")',"; done
    echo ']}]}]'
}

finish() {
    [ -z "${MONITOR:-}" ] || kill "$MONITOR" 2>/dev/null || true
    suite down >/dev/null 2>&1 || true
}

rm -rf "$WORK"
mkdir -p "$WORK"
trap finish EXIT
check "the rules are right, each alert fires where it must" rules_are_right
suite up --port $((BASE + 31)) --base-port "$BASE" >"$WORK/up.log" 2>&1 || { tail "$WORK/up.log"; exit 1; }
prometheus_config >"$WORK/prometheus.yaml"
promtool check config "$WORK/prometheus.yaml" >"$WORK/config.log"
prometheus --config.file="$WORK/prometheus.yaml" --storage.tsdb.path="$WORK/tsdb" --web.listen-address="$PROMETHEUS" \
    --log.level=warn >"$WORK/prometheus.log" 2>&1 &
MONITOR=$!
await 30 curl -sf "http://$PROMETHEUS/-/ready"
check "what services export is valid" metrics_are_valid
check "every expression of the dashboard gives figures" dashboard_gives_figures
check "every metric named is exported" names_are_exported
check "an alert fires and ends" an_alert_fires_and_ends
printf 'monitoring: %s passed, %s failed\n' $PASSED $FAILED
[ $FAILED -eq 0 ]
