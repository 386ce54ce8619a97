#!/bin/sh
# sbom.sh NAME VERSION FILE: an SPDX 2.3 document of an image, from the Debian packages that FILE lists.
set -eu
name=$1 version=$2

cat <<EOF
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "$name",
  "documentNamespace": "https://spdx.org/spdxdocs/$name-$version",
  "creationInfo": { "created": "1970-01-01T00:00:00Z", "creators": ["Tool: fractal-sbom"] },
  "documentDescribes": ["SPDXRef-$name"],
  "packages": [
    { "SPDXID": "SPDXRef-$name", "name": "$name", "versionInfo": "$version", "downloadLocation": "NOASSERTION",
      "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "filesAnalyzed": false }
EOF
while read -r package; do
    # shellcheck disable=SC2016 # dpkg-query's own variables
    dpkg-query -W -f='${Package} ${Version} ${source:Package} ${Architecture}\n' "$package"
done <"$3" | while read -r package its_version source architecture; do
    cat <<EOF
    , { "SPDXID": "SPDXRef-deb-$(echo "$package" | tr -c 'a-zA-Z0-9.\n-' -)", "name": "$package", "versionInfo": "$its_version",
      "downloadLocation": "NOASSERTION", "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
      "copyrightText": "NOASSERTION", "filesAnalyzed": false, "sourceInfo": "Debian source package $source",
      "externalRefs": [ { "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
        "referenceLocator": "pkg:deb/debian/$package@$(echo "$its_version" | sed 's/+/%2B/g; s/:/%3A/g')?arch=$architecture&distro=bookworm" } ] }
EOF
done
printf '  ],\n  "relationships": []\n}\n'
