#!/usr/bin/env bash
# A real KEDA on the suite's own metric: workers 0 -> 1 -> 3 -> 1 -> 0 as 8 streams come, become one, and
# end. Clients neither ask again nor come back: the first ones wait for the first worker, nothing is lost,
# and there is never no worker, nor one asked for, while work waits or runs.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

demand() { metric "$(pod scheduler)" scheduler fx_queue_demand; }
replicas() { k get "$(workload worker)" -o jsonpath='{.spec.replicas}'; }

# watch_it: a line "replicas demand" a second, until the file stop is there. Replicas are read last: what
# is asked for meanwhile is in time.
watch_it() {
    local work
    until [ -e "$WORK/stop" ]; do
        work=$(demand) && printf '%s %s\n' "$(replicas)" "$work"
        sleep 1
    done >"$WORK/scaling"
}

# scaled N SECONDS SINCE
scaled() {
    await "$2" "$1 workers" has_ready worker "$1"
    figure "$1 ready $(($(now_ms) - $3)) ms after $4"
}

kubectl get crd scaledobjects.keda.sh >/dev/null 2>&1 || fail "the cluster has no KEDA: see keda.sh"

no_worker() { [ "$(replicas)" = 0 ] && has_pods worker 0; }

release upgrade --values "$HERE/keda.yaml"
await 180 "no worker without work" no_worker

rm -f "$WORK/stop"
watch_it &
watching=$!
begin=$(now_ms)
crowd_begin --rate 4 --answer-seconds 120
figure "0 -> 1: all streams have tokens $(($(now_ms) - begin)) ms after they came"
scaled 3 120 "$begin" "8 streams came"
crowd_more 60 1000
crowd_end
figure "8 streams: $(crowd_line)"

begin=$(now_ms)
crowd_begin --streams 1
scaled 1 180 "$begin" "one stream was left"
crowd_more 60 1000
crowd_end
figure "1 stream: $(crowd_line)"

begin=$(now_ms)
await 180 "no worker without work" no_worker
figure "none $(($(now_ms) - begin)) ms after the last answer"
touch "$WORK/stop"
wait "$watching"

[ "$(head -n 1 "$WORK/scaling")" = "0 0" ] || fail "it did not begin without workers and work: $(head -n 1 "$WORK/scaling")"
! awk '$1 > 0 { began = 1 } began && $1 == 0 && $2 > 0 { bad = 1 } END { exit !bad }' "$WORK/scaling" ||
    fail "no worker while there was work: $(<"$WORK/scaling")"
figure "workers asked for: $(awk 'NR == 1 || $1 != last { printf "%s%s", sep, $1; sep = " -> "; last = $1 }' "$WORK/scaling")"
