# shellcheck shell=bash
# ./fractal test monitoring: dashboard and alert rules on a real Prometheus.

test_monitoring() {
    local log=$ROOT/build/monitoring.log
    need_packages build run test monitor
    [ -f "$BUILD/build.ninja" ] || configure release -DFX_TESTS=OFF
    build "$BUILD" --target "${PROGRAMS[@]/#/fractal-}"
    say "testing (monitoring)"
    WORK=$ROOT/build/monitoring "$ROOT/tests/observability/test_monitoring.sh" 2>&1 | tee "$log" || true
    if [[ $(tail -n 1 "$log") =~ ^monitoring:\ ([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        PASSED=$((PASSED + BASH_REMATCH[1])) FAILED=$((FAILED + BASH_REMATCH[2]))
    else
        FAILED=$((FAILED + 1))
    fi
}
