# shellcheck shell=bash
# Where a suite lives and its options. `up` saves them, so that later commands find the ports.

DATA=$ROOT/.fractal
PORT=5000 BASE_PORT=50050 WORKERS=1 SCHEDULERS=1 GATEWAYS=1 QUIET=no
INSTANCES_MAX=16
REST=()

# parse_options ARGUMENT...: options into variables, the rest into REST.
parse_options() {
    REST=()
    while [ $# -gt 0 ]; do
        case $1 in
            --data) DATA=${2-} ;;
            --port) PORT=$(number "$@" 1 65535) ;;
            --base-port) BASE_PORT=$(number "$@" 1 64000) ;;
            --workers) WORKERS=$(number "$@" 1 $INSTANCES_MAX) ;;
            --schedulers) SCHEDULERS=$(number "$@" 1 $INSTANCES_MAX) ;;
            --gateways) GATEWAYS=$(number "$@" 1 $INSTANCES_MAX) ;;
            --quiet)
                QUIET=yes
                shift
                continue
                ;;
            *)
                REST+=("$1")
                shift
                continue
                ;;
        esac
        shift $(($# > 1 ? 2 : 1))
    done
    settle_paths
}

# number OPTION VALUE ... MIN MAX: the value, checked.
number() {
    local option=$1 value=${2-} min=${*: -2:1} max=${*: -1}
    if [[ $value =~ ^[1-9][0-9]{0,5}$ ]] && [ "$value" -ge "$min" ] && [ "$value" -le "$max" ]; then
        echo "$value"
    else
        die "$option '$value': want a number from $min to $max"
    fi
}

no_more_arguments() {
    [ ${#REST[@]} -eq 0 ] || die "what is '${REST[0]}'?" "./fractal --help"
}

# take_data ARGUMENT...: only a leading --data; the rest, into REST, is the CLI's to read.
take_data() {
    if [ "${1-}" = --data ]; then
        DATA=${2-}
        shift $(($# > 1 ? 2 : 1))
    fi
    REST=("$@")
    settle_paths
}

settle_paths() {
    [ -n "$DATA" ] || die "--data needs a folder"
    case $DATA in /*) ;; *) DATA=$PWD/$DATA ;; esac
    RUN=$DATA/run LOGS=$DATA/log MODELS=$DATA/models
    TOKEN_FILE=$DATA/bootstrap-token KEY_FILE=$DATA/api-key
    REDIS_SOCKET=$DATA/redis/redis.sock
}

make_folders() {
    mkdir -p "$DATA"
    chmod 700 "$DATA"
    mkdir -p "$RUN" "$LOGS" "$MODELS" "$DATA/redis"
    # sockaddr_un holds 108 bytes
    [ ${#REDIS_SOCKET} -lt 104 ] || die "the data folder's path is too long for a socket: $DATA" \
        "./fractal up --data with a shorter path"
}

# One `up` or `down` at a time per data folder; the lock ends with this process.
take_lock() {
    exec 9>"$RUN/lock"
    flock -n 9 || die "another ./fractal up or down is at work in $DATA" "wait until it ends"
}

save_settings() {
    printf 'PORT=%s BASE_PORT=%s WORKERS=%s SCHEDULERS=%s GATEWAYS=%s\n' \
        "$PORT" "$BASE_PORT" "$WORKERS" "$SCHEDULERS" "$GATEWAYS" >"$RUN/settings"
}

load_settings() {
    [ -f "$RUN/settings" ] || return 0
    local pair
    for pair in $(<"$RUN/settings"); do
        if [[ $pair =~ ^(PORT|BASE_PORT|WORKERS|SCHEDULERS|GATEWAYS)=[0-9]+$ ]]; then
            declare -g "$pair"
        fi
    done
}
