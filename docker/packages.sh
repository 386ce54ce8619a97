#!/bin/sh
# packages.sh ROLE...: installs the packages that packages.txt lists for these roles.
set -eu
names=
for role; do
    names="$names $(awk -v role="$role" '$1 == role { print $2 }' packages.txt)"
done
export DEBIAN_FRONTEND=noninteractive
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d # no service starts
chmod 755 /usr/sbin/policy-rc.d
apt-get update -qq
# shellcheck disable=SC2086 # one word a package
apt-get install -y -qq --no-install-recommends $names
apt-get clean
rm -rf /var/lib/apt/lists/*
