# shellcheck shell=bash
# Configure and build by CMake presets.

PROGRAMS=(tenant slicer scheduler worker gateway cli)

# configure PRESET [CMAKE_OPTION...]: quiet unless it fails.
configure() {
    local preset=$1 log=$ROOT/build/configure-$1.log
    shift
    mkdir -p "$ROOT/build"
    command -v ccache >/dev/null && set -- "$@" -DCMAKE_C_COMPILER_LAUNCHER=ccache
    (cd "$ROOT" && cmake --preset "$preset" "$@") >"$log" 2>&1 && return
    tail -n 30 "$log" >&2
    die "cmake could not configure the preset '$preset'" "the whole log is $log"
}

# build FOLDER [CMAKE_OPTION...]
build() { cmake --build "$@" >&2 || die "$1 does not build" "the compiler's message is above"; }

# The programs alone: no test is built, so no test package is needed.
build_programs() {
    say "building (preset release)"
    [ -f "$BUILD/build.ninja" ] || configure release -DFX_TESTS=OFF
    build "$BUILD" --target "${PROGRAMS[@]/#/fractal-}"
}
