#!/usr/bin/env bash
# Wrong values: the chart's schema refuses them, the message names the value, and nothing is installed.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

# refused NAME OPTION...: the message must have NAME.
refused() {
    local name=$1 message
    shift
    if message=$(helm install "$RELEASE" "$CHART" --namespace "$NS" "$@" 2>&1); then
        fail "accepted: $*"
    fi
    grep -qF "$name" <<<"$message" || fail "$* is refused without naming $name: $message"
    say "$*: $(grep -F "$name" <<<"$message" | head -n 1 | sed 's/^ *- *//')"
}
