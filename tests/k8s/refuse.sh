#!/usr/bin/env bash
# Wrong values are refused before anything is installed, and the message names the value.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

# refused NAME OPTION...: the message must have NAME.
refused() {
    local name=$1 message
    shift
    ! message=$(helm install "$RELEASE" "$CHART" --namespace "$NS" "$@" 2>&1) || fail "accepted: $*"
    grep -qF "$name" <<<"$message" || fail "$* is refused without naming $name: $message"
    say "${*: -1}: $(grep -F "$name" <<<"$message" | tail -n 1 | sed 's/^[- ]*//')"
}

"$HERE/clean.sh"
refused replica --set services.gateway.replica=2
refused replicas --set-string services.gateway.replicas=two
refused replicas --set services.scheduler.replicas=-1
refused mode --set tls.mode=sometimes
refused memory --set worker.resources.limits.memory=plenty
refused LoadBalancer --set services.gateway.service.type=Public
refused existingSecret --set redis.bundled=false
refused gpus --set gpus=1
! helm status "$RELEASE" --namespace "$NS" >/dev/null 2>&1 || fail "a refused release is there"
figure "8 wrong values refused, nothing installed"
