# shellcheck shell=bash
# ./fractal test k8s: the scenarios of tests/k8s on the cluster that KUBECONFIG names.

# shellcheck disable=SC2034 # test.sh names them
K8S_SCENARIOS=(refuse install answers memory crash upgrade scale drain uninstall)
# shellcheck disable=SC2034
K8S_KEDA_SCENARIOS=(install answers keda uninstall)
K8S_IMAGES=(gateway tenant scheduler slicer worker cli redis crowd example)

k8s_need() {
    local program
    for program in kubectl helm jq docker; do
        command -v $program >/dev/null || die "'$program' is not here" "tests/k8s/README.md says what is needed"
    done
    kubectl version >/dev/null 2>&1 ||
        die "no cluster answers" "set KUBECONFIG to one that may be used for tests"
    [ -n "${K8S_LOAD:-}${K8S_PREFIX:-}" ] || die "how do images get there?" \
        "K8S_LOAD='kind load image-archive', or K8S_PREFIX=registry.example/team/"
}

# Beside the suite's: fractal-crowd, and a gRPC client in the place of the CLI.
k8s_client_images() {
    local folder=$K8S_WORK/image
    mkdir -p "$folder"
    cp "$BIN/fractal-crowd" "$BIN/fractal-example-chat" "$folder"
    docker build -q -t "${K8S_PREFIX}fractal-crowd:$K8S_TAG" -f "$ROOT/tests/crowd/Dockerfile" "$folder"
    printf 'FROM %sfractal-cli:%s\nCOPY fractal-example-chat /program\n' "$K8S_PREFIX" "$K8S_TAG" |
        docker build -q -t "${K8S_PREFIX}fractal-example:$K8S_TAG" -f - "$folder"
}

# k8s_image_names SUFFIX...: of the tag.
k8s_image_names() {
    local suffix service
    for suffix in "$@"; do
        for service in "${K8S_IMAGES[@]}"; do echo "${K8S_PREFIX}fractal-$service:$K8S_TAG$suffix"; done
    done
}

# Built, with a second tag to upgrade to.
k8s_build_images() {
    local name
    say "building the images"
    "$ROOT/tools/images" --prefix "$K8S_PREFIX" --tag "$K8S_TAG" >"$K8S_WORK/images.log" 2>&1 ||
        die "the images do not build" "see $K8S_WORK/images.log"
    k8s_client_images >>"$K8S_WORK/images.log" 2>&1 ||
        die "the clients' images do not build" "see $K8S_WORK/images.log"
    for name in $(k8s_image_names ''); do docker tag "$name" "$name-next"; done
}

# To where the cluster finds them.
k8s_bring_images() {
    local names load
    say "bringing the images to the cluster"
    mapfile -t names < <(k8s_image_names '' -next)
    if [ -z "${K8S_LOAD:-}" ]; then
        for name in "${names[@]}"; do docker push -q "$name" >/dev/null; done
        return
    fi
    read -ra load <<<"$K8S_LOAD"
    docker save -o "$K8S_WORK/images.tar" "${names[@]}"
    "${load[@]}" "$K8S_WORK/images.tar" >"$K8S_WORK/load.log" 2>&1 ||
        die "the images do not load" "see $K8S_WORK/load.log"
    rm -f "$K8S_WORK/images.tar"
}

# Without an installed release the others have nothing to look at.
k8s_scenarios() {
    local scenario begin
    for scenario in "$@"; do
        begin=$SECONDS
        say "k8s/$scenario"
        if "$ROOT/tests/k8s/$scenario.sh"; then
            PASSED=$((PASSED + 1))
            say "k8s/$scenario passed ($((SECONDS - begin)) s)"
            continue
        fi
        FAILED=$((FAILED + 1))
        say "k8s/$scenario FAILED ($((SECONDS - begin)) s)"
        [ "$scenario" != install ] || break
    done
}

# test_k8s SCENARIO...: their figures are said once more at the end.
test_k8s() {
    k8s_need
    export K8S_WORK=$ROOT/build/k8s K8S_PREFIX=${K8S_PREFIX:-} K8S_TAG
    K8S_TAG=test-$(date +%s)
    rm -rf "$K8S_WORK"
    mkdir -p "$K8S_WORK"
    need_packages build run test
    [ -n "${FRACTAL_BUILD:-}" ] || configure release -DFX_TESTS=ON
    build "$BUILD" --target fractal-crowd fractal-example-chat
    k8s_build_images
    k8s_bring_images
    k8s_scenarios "$@"
    "$ROOT/tests/k8s/clean.sh"
    k8s_image_names '' -next | xargs docker rmi >/dev/null
    [ ! -f "$K8S_WORK/figures" ] || cat "$K8S_WORK/figures"
}
