# shellcheck shell=bash
# Debian packages: what packages.txt lists for the roles asked for and this machine lacks.

POLICY=/usr/sbin/policy-rc.d

# listed ROLE...: package names of these roles, but those whose program is there already.
listed() {
    local role package program
    while read -r role package program; do
        [ -z "$program" ] || ! command -v "$program" >/dev/null || continue
        case " $* " in *" $role "*) echo "$package" ;; esac
    done < <(grep -v '^#' "$ROOT/packages.txt")
}

# missing ROLE...: those of them that are not installed.
missing() {
    local names installed
    mapfile -t names < <(listed "$@")
    installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${names[@]}" 2>/dev/null |
        sed -n 's/ installed$//p') || true
    comm -23 <(printf '%s\n' "${names[@]}" | sort -u) <(sort -u <<<"$installed")
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

can_be_root() {
    [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; }
}

# While packages install, no service of theirs may start (redis-server would take port 6379).
forbid_service_starts() {
    [ ! -e $POLICY ] || return 0
    printf '#!/bin/sh\nexit 101\n' | as_root tee $POLICY >/dev/null
    as_root chmod 755 $POLICY
    trap 'allow_service_starts' EXIT
    trap 'exit 130' INT TERM
}

allow_service_starts() {
    as_root rm -f $POLICY
    trap - EXIT INT TERM
}

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >&2; }

apt_install() {
    local ours=no
    [ -e $POLICY ] || ours=yes
    forbid_service_starts
    if ! apt_get update || ! apt_get install -y --no-install-recommends "$@"; then
        die "apt-get could not install: $*" "its message is above; install them, then run this again"
    fi
    [ $ours = no ] || allow_service_starts
}

# need_packages ROLE...: installs what is missing, or says what to do.
need_packages() {
    local lacking
    if ! command -v dpkg-query >/dev/null; then
        say "no dpkg here: the packages of packages.txt ($*) are assumed"
        return
    fi
    mapfile -t lacking < <(missing "$@")
    [ -n "${lacking[*]}" ] || return 0
    can_be_root || die "these Debian packages are missing and need root: ${lacking[*]}" \
        "as root: apt-get install --no-install-recommends ${lacking[*]}"
    say "installing ${#lacking[@]} packages: ${lacking[*]}"
    apt_install "${lacking[@]}"
}

need_redis() {
    command -v redis-server >/dev/null || die "redis-server is not installed" \
        "apt-get install redis-server (any Redis 7.0 or later on the PATH will do)"
}
