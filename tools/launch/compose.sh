# shellcheck shell=bash
# ./fractal test compose: the suite in containers. Where no Docker engine can be had it is not run, and
# the summary says so.

# shellcheck source=tests/compose/engine.sh
. "$ROOT/tests/compose/engine.sh"

test_compose() {
    local work=$ROOT/build/compose log=$ROOT/build/compose/log
    mkdir -p "$work"
    need_packages build run test container
    configure release -DFX_TESTS=ON
    build "$ROOT/build/release" --target fractal-crowd
    say "testing (containers)"
    if ! engine_start "$work/docker"; then
        NOT_RUN+=", not run: containers ($ENGINE_WHY)"
        return
    fi
    COMPOSE=$(command -v docker-compose) CROWD=$ROOT/build/release/bin/fractal-crowd WORK=$work \
        "$ROOT/tests/compose/test_compose.sh" 2>&1 | tee "$log" || true
    engine_stop
    if [[ $(tail -n 1 "$log") =~ ^compose:\ ([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
        PASSED=$((PASSED + BASH_REMATCH[1])) FAILED=$((FAILED + BASH_REMATCH[2]))
    else
        FAILED=$((FAILED + 1))
    fi
}
