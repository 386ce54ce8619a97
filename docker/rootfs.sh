#!/bin/sh
# rootfs.sh SERVICE VERSION FOLDER: what one image holds.
#
# FOLDER/image    /bin/fractal-SERVICE (redis: /bin/redis-server, redis-cli) and /program, a link to
#                 it; the shared libraries it loads, by ldd; CA certificates; /etc/passwd; the files
#                 of the packages they come from in /var/lib/dpkg/status.d, where scanners look, and
#                 as /sbom.spdx.json.
# FOLDER/volumes  empty folders that the image's user owns.
set -eu
service=$1 version=$2 image=$3/image volumes=$3/volumes
here=$(dirname "$(readlink -f "$0")")
rm -rf "$3"
mkdir -p "$image/bin" "$image/etc/ssl/certs" "$image/var/lib/dpkg/status.d" "$volumes"

# take FILE: with its path, and the libraries it needs.
take() {
    cp -L --parents "$1" "$image"
    ldd "$1" 2>/dev/null | awk '$1 ~ /^\// { print $1 } $3 ~ /^\// { print $3 }' |
        while read -r library; do
            [ -e "$image$library" ] || cp -L --parents "$library" "$image"
        done
}

# program FILE: into /bin, under its own name.
program() {
    take "$1"
    [ "$(dirname "$1")" = /bin ] || mv "$image$1" "$image/bin/"
}

# owner FILE: the package it comes from; none: ours.
owner() {
    for path in "$1" "/usr$1" "${1#/usr}"; do
        dpkg-query -S "$path" 2>/dev/null | cut -d: -f1 && return
    done
}

case $service in
    redis)
        for name in redis-server redis-cli; do program /usr/bin/$name; done
        ln -s bin/redis-server "$image/program"
        mkdir -p "$volumes/data"
        ;;
    *)
        program "/src/build/release/bin/fractal-$service"
        ln -s "bin/fractal-$service" "$image/program"
        mkdir -p "$volumes/models" "$volumes/secrets"
        ;;
esac
rm -rf "$image/src"
if [ "$service" = slicer ]; then # a store begins with the bundled model, which the slicer reads
    mkdir -p "$image/usr/share/fractal/models"
    cp -r /src/models/fractal-tiny-moe "$image/usr/share/fractal/models/"
    rm -f "$image"/usr/share/fractal/models/*/oracle*
fi
cp /etc/ssl/certs/ca-certificates.crt "$image/etc/ssl/certs/"
echo 'fractal:x:65532:65532:fractal:/:/sbin/nologin' >"$image/etc/passwd"
echo 'fractal:x:65532:' >"$image/etc/group"

find "$image" -type f ! -path "$image/var/*" | sed "s|^$image||" | while read -r file; do
    owner "$file"
done | sort -u >"$3/packages"
while read -r package; do
    dpkg-query -s "$package" >"$image/var/lib/dpkg/status.d/$package"
done <"$3/packages"
"$here/sbom.sh" "fractal-$service" "$version" "$3/packages" >"$image/sbom.spdx.json"
chmod -R u=rwX,go=rX "$image"
