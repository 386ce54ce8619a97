#!/usr/bin/env bash
# helm install --wait into a namespace that enforces Pod Security `restricted`, then helm test. The
# clients' pod stands in a namespace of its own.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

# make_key: with the commands that helm install prints.
make_key() {
    helm get notes "$RELEASE" --namespace "$NS" | sed -n '/create job/,/delete job/p' >"$WORK/key.sh"
    # shellcheck disable=SC2016
    echo 'echo "$KEY"' >>"$WORK/key.sh"
    bash -e "$WORK/key.sh" | grep -oxE 'fx-[0-9a-f]{64}' || fail "the notes make no key: $(<"$WORK/key.sh")"
}

make_clients() {
    kc create secret generic key --from-literal=key="$1" >/dev/null
    sed "s|CROWD_IMAGE|$(image crowd)|" "$HERE/clients.yaml" | kc apply -f - >/dev/null
    kc wait --for=condition=Ready pod/crowd --timeout=60s >/dev/null
}

"$HERE/clean.sh"
for namespace in "$NS" "$CLIENTS"; do
    kubectl create namespace "$namespace" >/dev/null
    kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted >/dev/null
done

begin=$(now_ms)
release install
figure "helm install --wait: $(($(now_ms) - begin)) ms"

key=$(make_key)
make_clients "$key"

begin=$(now_ms)
helm test "$RELEASE" --namespace "$NS" --logs --timeout "$HELM_TIMEOUT" >"$WORK/helm-test.log" 2>&1 ||
    fail "helm test: $(tail -n 20 "$WORK/helm-test.log")"
grep -q 'Phase: *Succeeded' "$WORK/helm-test.log" || fail "helm test: the chart has no test"
figure "helm test: $(($(now_ms) - begin)) ms"
