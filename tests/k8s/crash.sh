#!/usr/bin/env bash
# A pod of each kind is deleted in mid-stream, politely and by force: no stream breaks off, and every
# text is the recorded one. Only a gateway takes its connections with it: its clients come back.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

TOKENS_AFTER=3000 # what must come behind the replacement

# strike COMPONENT HOW DELETE_OPTION...
strike() {
    local component=$1 how=$2 victim uid count begin ms
    shift 2
    count=$(ready_count "$component")
    victim=$(pod "$component")
    uid=$(k get pod "$victim" -o jsonpath='{.metadata.uid}')
    crowd_begin --resume
    begin=$(now_ms)
    k delete pod "$victim" --wait=false "$@" >/dev/null 2>&1
    await 60 "the end of $victim" gone "$uid"
    await 120 "another $component" has_ready "$component" "$count"
    ms=$(($(now_ms) - begin))
    crowd_more 120 $TOKENS_AFTER
    crowd_end
    [ "$component" = gateway ] || [ "$(crowd_says came_back)" -eq 0 ] ||
        fail "$component $how: streams broke off: $CROWD_JSON"
    figure "$component $how: another ready after $ms ms; $(crowd_line)"
}

[ $# -gt 0 ] || set -- worker scheduler redis tenant slicer gateway
for component; do
    strike "$component" deleted
    strike "$component" killed --grace-period=0 --force
done
