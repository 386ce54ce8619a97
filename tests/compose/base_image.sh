#!/usr/bin/env bash
# base_image.sh NAME FOLDER: a Debian 12 image from the mirror that this machine uses, where no registry
# of images can be reached. FOLDER keeps the file system for the next time.
set -euo pipefail

NAME=$1 ROOTFS=$2/rootfs
SOURCES=/etc/apt/sources.list.d/debian.sources

if docker image inspect "$NAME" >/dev/null 2>&1 || timeout 60 docker pull -q "$NAME" >/dev/null 2>&1; then exit; fi
if [ ! -e "$2/done" ]; then
    mirror=$(sed -nE 's/^URIs: *([^ ]+).*/\1/p' "$SOURCES" | head -n 1)
    rm -rf "$ROOTFS"
    mkdir -p "$ROOTFS"
    debootstrap --variant=minbase bookworm "$ROOTFS" "$mirror" >"$2/debootstrap.log"
    cp "$SOURCES" "$ROOTFS/etc/apt/sources.list.d/"
    : >"$ROOTFS/etc/apt/sources.list"
    chroot "$ROOTFS" apt-get clean
    rm -rf "$ROOTFS"/var/lib/apt/lists/* "$ROOTFS"/usr/share/{doc,man,locale}/*
    touch "$2/done"
fi
tar -C "$ROOTFS" -c . | docker import -c 'CMD ["bash"]' \
    -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$NAME" >/dev/null
