#!/usr/bin/env bash
# helm uninstall leaves what docs/kubernetes.md says, and nothing else.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

# left: kind/name of all that is in the namespace, but what the cluster itself puts there.
left() {
    local kinds
    kinds=$(kubectl api-resources --verbs=list --namespaced -o name | grep -vE '^events|metrics' | paste -sd,)
    k get "$kinds" -o name 2>/dev/null |
        grep -vxE 'configmap/kube-root-ca.crt|serviceaccount/default' | sort
}

WANT="persistentvolumeclaim/$RELEASE-models
persistentvolumeclaim/data-$RELEASE-redis-0
pod/$RELEASE-test"

is_done() { ! left | grep -qvxF "$WANT"; }

begin=$(now_ms)
helm uninstall "$RELEASE" --namespace "$NS" --wait --timeout "$HELM_TIMEOUT" >/dev/null
ms=$(($(now_ms) - begin))
end=$((SECONDS + 60)) # what the cluster derives from objects goes a little later
until is_done; do
    [ $SECONDS -lt $end ] || fail "left behind: $(left | grep -vxF "$WANT" | paste -sd' ')"
    sleep 1
done
[ "$(left | sort)" = "$(sort <<<"$WANT")" ] || fail "the docs say $(paste -sd' ' <<<"$WANT"), left is $(left | paste -sd' ')"
figure "helm uninstall: $ms ms; left: $(left | paste -sd' ')"
