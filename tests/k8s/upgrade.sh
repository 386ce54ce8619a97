#!/usr/bin/env bash
# A rolling upgrade of every service to another image, and back, under 8 open streams and 20 requests
# a second of clients that neither ask again nor come back: no request fails, no text differs.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

SERVICES=(gateway worker scheduler tenant slicer)

uids() {
    local service
    for service in "${SERVICES[@]}"; do
        k get pods -l "$(selector "$service")" -o jsonpath='{range .items[*]}{.metadata.uid}{"\n"}{end}'
    done
}

# upgrade WHAT OPTION...
upgrade() {
    local what=$1 before begin
    shift
    before=$(uids)
    crowd_begin --rate 20
    begin=$(now_ms)
    release upgrade "$@"
    local ms=$(($(now_ms) - begin))
    crowd_more 60 500
    crowd_end
    ! grep -qxF "$before" < <(uids) || fail "a pod was not replaced"
    figure "$what: $ms ms; $(crowd_line)"
}
