# shellcheck shell=bash
# ./fractal test and bench.

PASSED=0 FAILED=0

# run_ctest PRESET CTEST_OPTION...: adds its figures to PASSED and FAILED.
run_ctest() {
    local preset=$1 log=$ROOT/build/$1/ctest.log summary
    shift
    say "testing (preset $preset)"
    ctest --test-dir "$ROOT/build/$preset" -j2 --output-on-failure --no-tests=error "$@" 2>&1 |
        tee "$log" || true
    summary=$(grep -E '^[0-9]+% tests passed' "$log") || summary='0% tests passed, 1 tests failed out of 1'
    [[ $summary =~ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]
    FAILED=$((FAILED + BASH_REMATCH[1]))
    PASSED=$((PASSED + BASH_REMATCH[2] - BASH_REMATCH[1]))
}

build_tests() {
    say "building (preset $1)"
    configure "$1" -DFX_TESTS=ON
    build "$ROOT/build/$1"
}

build_fuzzers() {
    say "building (preset fuzz)"
    configure fuzz -DFX_TESTS=ON
    build "$ROOT/build/fuzz" --target fuzzers
}

# The seeds, then 15 seconds of new input for each target.
test_fuzz() {
    build_fuzzers
    run_ctest fuzz -L '^fuzz$'
}

test_all() {
    build_tests release
    run_ctest release -LE '^(long|bench)$'
    build_tests asan
    run_ctest asan -L '^(unit|golden|integ|fuzz)$' -LE '^(long|bench)$'
    build_tests tsan
    run_ctest tsan -L '^(unit|integ)$' -LE '^(long|bench)$'
    test_fuzz
}

test_label() {
    build_tests release
    run_ctest release -L "^($1)\$"
}

run_tests() {
    local begin=$SECONDS what=${1:-all}
    [ $# -le 1 ] || [ "$what" = fuzz-long ] || die "usage: ./fractal test [WHAT]"
    need_packages build run test
    case $what in
        all) test_all ;;
        fuzz) test_fuzz ;;
        fuzz-long) test_fuzz_long "${@:2}" ;;
        *) test_label "$what" ;;
    esac
    echo "$PASSED passed, $FAILED failed ($((SECONDS - begin)) s)"
    [ $FAILED -eq 0 ]
}

run_bench() {
    [ $# -ge 1 ] || die "usage: ./fractal bench NAME" "build/release/bin/fractal-bench --help lists the names"
    need_packages build run test
    configure release -DFX_TESTS=ON
    build "$ROOT/build/release" --target fractal-bench
    exec "$BIN/fractal-bench" "$@"
}
