# shellcheck shell=bash
# ./fractal test fuzz-long: every fuzz target for a long time, two at once, behind everybody else.

FUZZ=$ROOT/build/fuzz
FUZZ_S_DEFAULT=600
declare -A FUZZ_PIDS=() FUZZ_BEGAN=() FUZZ_TOOK=() # target -> its process, its seconds

# fuzz_targets [NAME...]: those asked for, or all that were built.
fuzz_targets() {
    local file name
    if [ $# -eq 0 ]; then
        for file in "$FUZZ"/tests/*_fuzz; do basename "$file" _fuzz; done
        return
    fi
    for name; do
        [ -x "$FUZZ/tests/${name}_fuzz" ] || die "no fuzz target '$name'" \
            "the targets are tests/fuzz/NAME_fuzz.c"
        echo "$name"
    done
}

fuzz_log() { echo "$FUZZ/fuzz-$1.log"; }

# last_number PATTERN FILE: of the last line that holds the pattern, the number behind it.
last_number() {
    local number
    number=$(grep -aoE "$1 *[0-9]+" "$2" | tail -n 1 | grep -aoE '[0-9]+$') || number=0
    echo "$number"
}

findings_of() { find "$FUZZ/findings/$1" -type f 2>/dev/null; }

fuzz_start() {
    nice -n 19 "$ROOT/tests/fuzz/run.sh" "$FUZZ" "$1" "$2" >"$(fuzz_log "$1")" 2>&1 </dev/null &
    FUZZ_PIDS[$1]=$! FUZZ_BEGAN[$1]=$SECONDS
}

# Forgets those that have ended.
fuzz_reap() {
    local name
    for name in "${!FUZZ_PIDS[@]}"; do
        ! kill -0 "${FUZZ_PIDS[$name]}" 2>/dev/null || continue
        FUZZ_TOOK[$name]=$((SECONDS - FUZZ_BEGAN[$name]))
        unset "FUZZ_PIDS[$name]"
    done
}

fuzz_stop() {
    local name
    for name in "${!FUZZ_PIDS[@]}"; do
        pkill -TERM -P "${FUZZ_PIDS[$name]}" 2>/dev/null || true # the fuzzer under run.sh
    done
}

# fuzz_progress DONE TOTAL: one line that rewrites itself on a terminal, else one a minute.
fuzz_progress() {
    local name line
    line="$1 of $2 targets done"
    for name in "${!FUZZ_PIDS[@]}"; do
        line+=", $name: $(last_number '^#' "$(fuzz_log "$name")") inputs"
    done
    if [ -t 2 ]; then
        printf '\r\e[K%s' "$line" >&2
    elif [ $((SECONDS / 60)) -ne "${FUZZ_TOLD:--1}" ]; then
        FUZZ_TOLD=$((SECONDS / 60))
        say "$line"
    fi
}

# fuzz_row TARGET
fuzz_row() {
    local log
    log=$(fuzz_log "$1")
    printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$1" \
        "${FUZZ_TOOK[$1]}" "$(last_number 'number_of_executed_units:' "$log")" \
        "$(last_number 'average_exec_per_sec:' "$log")" "$(last_number 'cov:' "$log")" \
        "$(last_number 'ft:' "$log")" "$(last_number 'corp:' "$log")" "$(findings_of "$1" | wc -l)"
}

fuzz_table() {
    local name
    echo '| target | seconds | inputs run | a second | edges | features | corpus | findings |'
    echo '|---|---|---|---|---|---|---|---|'
    for name; do fuzz_row "$name"; done
}

fuzz_replays() {
    local name file
    for name; do
        for file in $(findings_of "$name"); do
            echo "finding: $FUZZ/tests/${name}_fuzz $file"
        done
    done
}

# fuzz_run SECONDS TARGET...
fuzz_run() {
    local seconds=$1 name started=0
    shift
    trap fuzz_stop EXIT
    for name; do
        while [ ${#FUZZ_PIDS[@]} -ge 2 ]; do
            fuzz_progress $((started - ${#FUZZ_PIDS[@]})) $#
            sleep 1
            fuzz_reap
        done
        fuzz_start "$name" "$seconds"
        started=$((started + 1))
    done
    while [ ${#FUZZ_PIDS[@]} -gt 0 ]; do
        fuzz_progress $((started - ${#FUZZ_PIDS[@]})) $#
        sleep 1
        fuzz_reap
    done
    trap - EXIT
    [ ! -t 2 ] || echo >&2
}

# test_fuzz_long [TARGET...]
test_fuzz_long() {
    local seconds targets replays name
    seconds=$(number FX_FUZZ_S "${FX_FUZZ_S:-$FUZZ_S_DEFAULT}" 1 86400)
    build_fuzzers
    mapfile -t targets < <(fuzz_targets "$@")
    [ -n "${targets[*]}" ] || exit 1
    say "${#targets[@]} targets for $seconds s each, two at once"
    fuzz_run "$seconds" "${targets[@]}"
    fuzz_table "${targets[@]}" | tee "$FUZZ/fuzz-long.md"
    fuzz_replays "${targets[@]}"
    for name in "${targets[@]}"; do
        if [ -z "$(findings_of "$name")" ]; then PASSED=$((PASSED + 1)); else FAILED=$((FAILED + 1)); fi
    done
}
