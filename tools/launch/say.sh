# shellcheck shell=bash
# Words to the user: progress on stderr, results on stdout.

if [ -t 2 ]; then
    BOLD=$'\e[1m' PLAIN=$'\e[0m'
else
    BOLD='' PLAIN=''
fi

say() { printf '%s==>%s %s\n' "$BOLD" "$PLAIN" "$*" >&2; }

# die MESSAGE [REMEDY]
die() {
    printf 'fractal: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf '  remedy: %s\n' "$2" >&2
    exit 1
}
