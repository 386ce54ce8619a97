#!/usr/bin/env bash
# Answers through the gateway's node ports, over HTTP and gRPC. What they are is recorded for the other
# scenarios: nothing happens meanwhile.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

crowd_record
figure "HTTP: $(tail -n 1 "$WORK/record.json" |
    jq -r '"\(.streams) streams and \(.requests) requests, \(.tokens) tokens in \(.seconds) s"')"

# A client's certificate, as it is handed to a team that asks over gRPC.
k get secret "$RELEASE-tls-cli" -o json | jq '{apiVersion, kind, type, data, metadata: {name: "certificate"}}' |
    kc apply -f - >/dev/null
address=$(node_address):$(node_port grpc)
sed "s|EXAMPLE_IMAGE|$(image example)|; s|ADDRESS|$address|; s|RELEASE|$RELEASE|" "$HERE/example.yaml" | kc apply -f - >/dev/null
await 60 "an answer over gRPC" pod_ended example
text=$(kc logs example)
[ "$(kc get pod example -o jsonpath='{.status.phase}')" = Succeeded ] || fail "gRPC: $text"
kc delete pod example >/dev/null
figure "gRPC: ${#text} characters"
