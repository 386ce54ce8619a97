#!/usr/bin/env bash
# Workers 1 -> 3 -> 1 by hand under 8 open streams and 20 requests a second of clients that neither ask
# again nor come back: no other change, nothing is lost, and each of the three works.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"

scale_to() {
    local begin
    begin=$(now_ms)
    k scale "$(workload worker)" --replicas="$1" >/dev/null
    await 120 "$1 workers" has_ready worker "$1"
    await 120 "the end of the others" has_pods worker "$1"
    figure "$1 workers after $(($(now_ms) - begin)) ms"
}

has_worked() { [ "$(metric "$1" worker fx_worker_tokens_decoded_total)" -gt 0 ]; }

crowd_begin --rate 20
scale_to 3
for pod in $(pods worker); do await 60 "work of $pod" has_worked "$pod"; done
scale_to 1
crowd_more 60 1000
crowd_end
figure "1 -> 3 -> 1: $(crowd_line)"
