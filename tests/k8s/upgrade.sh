#!/usr/bin/env bash
# A rolling upgrade of every service to other images, and back by a rollback, under 8 open streams and
# 20 requests a second of clients that neither ask again nor come back: none fails, no text differs.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

SERVICES=(gateway worker scheduler tenant slicer)

uids() {
    local service
    for service in "${SERVICES[@]}"; do
        k get pods -l "$(selector "$service")" -o jsonpath='{range .items[*]}{.metadata.uid}{"\n"}{end}'
    done
}

# roll WHAT COMMAND...
roll() {
    local what=$1 before begin ms
    shift
    before=$(uids)
    crowd_begin --rate 20
    begin=$(now_ms)
    "$@"
    ms=$(($(now_ms) - begin))
    crowd_more 60 1000
    crowd_end
    ! uids | grep -qxF "$before" || fail "$what: a pod was not replaced"
    figure "$what: $ms ms; $(crowd_line)"
}

rollback() {
    helm rollback "$RELEASE" --namespace "$NS" --wait --timeout "$HELM_TIMEOUT" >"$WORK/helm.log" 2>&1 ||
        fail "helm rollback: $(tail -n 5 "$WORK/helm.log")"
}

roll "helm upgrade" release upgrade --set-string "image.tag=$K8S_TAG-next" --set-string "redis.tag=$K8S_TAG"
roll "helm rollback" rollback
