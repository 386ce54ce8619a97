#!/usr/bin/env bash
# A node with a gateway is drained under 8 streams: the disruption budget keeps one gateway in service,
# and no stream is lost. On a cluster of one node the drain waits for a place for the first one, since the
# second eviction is refused, and goes on as soon as there is one.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

NODE=$(k get pod "$(pod gateway)" -o jsonpath='{.spec.nodeName}')

drain() {
    kubectl drain "$NODE" --pod-selector="$(selector gateway)" --delete-emptydir-data --ignore-daemonsets \
        --timeout=180s >"$WORK/drain.log" 2>&1
}

# watch_it: the least number of ready gateways, until the file stop is there.
watch_it() {
    local least=99 count
    until [ -e "$WORK/stop" ]; do
        count=$(ready_count gateway)
        [ "$count" -ge "$least" ] || least=$count
        sleep 0.3
    done
    echo "$least" >"$WORK/least"
}

is_refused() { grep -q 'disruption budget' "$WORK/drain.log"; }

trap 'kubectl uncordon "$NODE" >/dev/null' EXIT
rm -f "$WORK/stop"
crowd_begin --resume
watch_it 9>&- &
watching=$!
drain 9>&- &
draining=$!
if [ "$(kubectl get nodes -o name | wc -l)" -eq 1 ]; then
    await 60 "a refused eviction" is_refused
    crowd_more 60 1000
    kubectl uncordon "$NODE" >/dev/null
fi
wait "$draining" || fail "the drain: $(tail -n 3 "$WORK/drain.log")"
await 120 "2 gateways" has_ready gateway 2
touch "$WORK/stop"
wait "$watching"
crowd_more 60 1000
crowd_end
[ "$(<"$WORK/least")" -ge 1 ] || fail "no gateway was ready for a while"
figure "never less than $(<"$WORK/least") gateway ready; $(grep -c 'disruption budget' "$WORK/drain.log") evictions refused; $(crowd_line)"
