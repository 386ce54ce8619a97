#!/usr/bin/env bash
# What each service is charged when idle (usage - inactive_file, as the kubelet counts it), 60 s after it
# began. The kubelet looks every 10 s or so.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

IDLE_S=60 SMALL=(gateway tenant scheduler slicer) SMALL_BYTES=6000000

nodes_stats() {
    local node
    for node in $(kubectl get nodes -o jsonpath='{.items[*].metadata.name}'); do
        kubectl get --raw "/api/v1/nodes/$node/proxy/stats/summary"
    done
}

# charged COMPONENT: "pod charged anonymous", bytes, of each pod's main container.
charged() {
    local names
    names=$(pods "$1" | jq -R . | jq -s .)
    jq -r --arg ns "$NS" --argjson names "$names" '.pods[]
        | select(.podRef.namespace == $ns) | .podRef.name as $pod | select($names | index($pod))
        | .containers[] | select(.name == "'"$1"'")
        | "\($pod) \(.memory.workingSetBytes) \(.memory.rssBytes)"' <<<"$STATS"
}

sleep $IDLE_S
STATS=$(nodes_stats)
over=0
for component in "${COMPONENTS[@]}"; do
    lines=$(charged "$component")
    [ -n "$lines" ] || fail "the kubelet knows no $component"
    while read -r name bytes anonymous; do
        figure "$component: $(mb "$bytes") MB charged, $(mb "$anonymous") MB anonymous"
        [[ " ${SMALL[*]} " != *" $component "* ]] || [ "$bytes" -le $SMALL_BYTES ] ||
            { say "$name is over $(mb $SMALL_BYTES) MB"; over=1; }
    done <<<"$lines"
done
[ $over -eq 0 ] || fail "a service is charged more than $(mb $SMALL_BYTES) MB"
