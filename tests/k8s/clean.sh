#!/usr/bin/env bash
# The cluster as it was: the release, its volumes' claims and both namespaces go.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

! helm status "$RELEASE" --namespace "$NS" >/dev/null 2>&1 ||
    helm uninstall "$RELEASE" --namespace "$NS" --wait --timeout "$HELM_TIMEOUT" >/dev/null
kubectl delete namespace "$NS" "$CLIENTS" --ignore-not-found --timeout=120s >/dev/null
