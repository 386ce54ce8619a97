#!/usr/bin/env bash
# A node with a gateway is drained: the disruption budget keeps one in service until another is ready.
# Where there is no other node, the drain waits, and the second eviction is refused.
# shellcheck source=tests/k8s/lib.sh
. "$(dirname "$0")/lib.sh"
