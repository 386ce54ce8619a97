#!/usr/bin/env bash
# run.sh TIDY CASE: lays the files of CASE over the clean tree and wants exactly the findings that
# CASE/expect lists (none, and success, where there is no such file).
set -euo pipefail
tidy=$1 case=$2
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp -R "$here/clean/." "$here/$case/." "$tree"
want_status=0 status=0
[ ! -e "$tree/expect" ] || want_status=1
"$tidy" "$tree" >"$tree/got" || status=$?
sed -i '/^tidy: /d' "$tree/got"
touch "$tree/expect"
diff "$tree/expect" "$tree/got"
[ "$status" = "$want_status" ] || { echo "exit status $status"; exit 1; }
