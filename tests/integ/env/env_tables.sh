#!/usr/bin/env bash
# env_tables.sh SOURCE_DIR PROGRAM...: the variables in the programs' --help and the names in
# common/base/env_names.c are the same set, so that no program refuses another's variable and no
# name outlives its reader.
set -euo pipefail
source_dir=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in "$@"; do
    "$program" --help >"$work/help" || { echo "$program --help failed"; exit 1; }
    grep -qE '^  FX_' "$work/help" || { echo "$program --help shows no table"; exit 1; }
    sed -nE 's/^  (FX_[A-Z0-9_]+) .*/\1/p' "$work/help" >>"$work/read"
done
sort -u "$work/read" -o "$work/read"
sed -nE 's/^ *"(FX_[A-Z0-9_]+)",$/\1/p' "$source_dir/common/base/env_names.c" | sort >"$work/known"
status=0
comm -23 "$work/read" "$work/known" | sed 's/$/: a program reads it, env_names.c lacks it/' >"$work/wrong"
comm -13 "$work/read" "$work/known" | sed 's/$/: in env_names.c, no program reads it/' >>"$work/wrong"
[ ! -s "$work/wrong" ] || status=1
cat "$work/wrong"
exit "$status"
