#!/usr/bin/env bash
# previous.sh [PROGRAM ARGUMENT...]: the services of the version delivered before this one, built
# from git history once into build/previous/COMMIT; then runs the program, with the folder behind its
# arguments. FX_TEST_PREVIOUS=no, or a clone without that commit: runs nothing, and says so with status 77.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
PIN=$ROOT/tests/e2e/previous_version
COMMIT=$(<"$PIN")
DIR=$ROOT/build/previous/$COMMIT
SERVICES=(gateway scheduler worker tenant slicer)

if [ "${FX_TEST_PREVIOUS:-}" = no ]; then
    echo "not run: old and new services side by side (FX_TEST_PREVIOUS=no)"
    exit 77
fi

need_commit() {
    git -C "$ROOT" cat-file -e "$COMMIT^{commit}" 2>/dev/null && return
    echo "not run: old and new services side by side (commit $COMMIT of tests/e2e/previous_version is" \
        "not in this clone: git fetch --unshallow brings it)"
    exit 77
}

build() {
    local work options=()
    work=$(mktemp -d "$ROOT/build/previous/work-XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/source"
    git -C "$ROOT" archive "$COMMIT" | tar -x -C "$work/source"
    ! command -v ccache >/dev/null || options=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS_DEBUG=-O1 -DFX_TESTS=OFF -DFX_WERROR=OFF "${options[@]}" >&2
    cmake --build "$work/build" --target "${SERVICES[@]/#/fractal-}" >&2
    mkdir "$work/done"
    mv "$work/build/bin" "$work/done/"
    (cd "$work/source" && cp --parents common/queue/fractal.lua services/*/*.lua "$work/done")
    mv "$work/done" "$DIR"
    rm -rf "$work"
    trap - EXIT
}

mkdir -p "$ROOT/build/previous"
exec 9>"$ROOT/build/previous/lock"
flock 9
if [ ! -d "$DIR" ]; then
    need_commit
    build
fi
exec 9>&-
[ $# -eq 0 ] || exec "$@" "$DIR"
