#!/usr/bin/env bash
# A real KEDA on the suite's own metric: workers 0 -> 1 -> 3 -> 1 -> 0 under load. No answer is lost, and
# there is always a worker, or one on its way, while work waits or runs.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"
