#!/usr/bin/env bash
# run.sh BUILD_FOLDER TARGET SECONDS [LIBFUZZER_OPTION...]: fuzzes one target of a fuzz build: its
# seeds, what earlier runs found worth keeping, then new input until the time is up. The last input
# is kept in BUILD_FOLDER/findings/TARGET when it crashes, leaks or takes too long.
set -euo pipefail
build=$1 target=$2 seconds=$3
shift 3
seeds=$(cd "$(dirname "$0")" && pwd)
kept=$build/corpus/$target findings=$build/findings/$target
mkdir -p "$kept" "$findings"
for name in "${!FX_@}"; do unset "$name"; done # env_fuzz sets its own
dictionary=$seeds/$target.dict
[ ! -f "$dictionary" ] || set -- -dict="$dictionary" "$@"
fuzzer=$build/tests/${target}_fuzz
status=0
"$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$findings/" "$@" "$kept" "$seeds/corpus/$target" || status=$?
[ $status -eq 0 ] || for file in "$findings"/*; do
    echo "finding: $fuzzer $file" >&2
done
exit $status
