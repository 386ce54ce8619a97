#!/usr/bin/env bash
# helm uninstall leaves what docs/kubernetes.md says, and nothing else.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

# left: kind/name of all that is in the namespace and is not the cluster's own.
left() {
    local kinds
    kinds=$(kubectl api-resources --verbs=list --namespaced -o name |
        grep -vE '^(events|leases|endpoints|endpointslices|podmetrics|pods\.metrics)' | paste -sd,)
    k get "$kinds" -o name 2>/dev/null |
        grep -vxE 'configmap/kube-root-ca.crt|serviceaccount/default' | sort
}
