#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints an SPDX 2.3 document. Runs in the slim image as well, so it needs sh and awk only.
# Usage: sbom.sh NAME VERSION SECONDS, with one component per line on standard input:
#   RELATION<tab>deb|file<tab>NAME<tab>VERSION<tab>ARCHITECTURE<tab>SHA-256 or -<tab>FILE or -
set -eu
[ $# = 3 ] || { echo "usage: sbom.sh NAME VERSION SECONDS <COMPONENTS" >&2; exit 2; }
# Sorted, so that the same components always give the same bytes.
LC_ALL=C sort -u | LC_ALL=C awk -F '\t' -v name="$1" -v version="$2" -v created="$(date -u -d "@$3" +%FT%TZ)" '
function quoted(text) {
  gsub(/\\/, "\\\\\\\\", text); gsub(/"/, "\\\\\"", text); gsub(/[[:cntrl:]]/, " ", text)
  return "\"" text "\""
}
function component(id, what, release, file, rest) {
  return "{\"SPDXID\": " quoted(id) ", \"name\": " quoted(what) ", \"versionInfo\": " quoted(release) \
    (file == "-" ? "" : ", \"packageFileName\": " quoted(file)) \
    ", \"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\"" rest "}"
}
NF != 7 || $3 == "" { print "sbom: line " NR " has " NF " fields, 7 required: " $0 > "/dev/stderr"; bad = 1; exit 1 }
{
  id = "SPDXRef-" NR
  rest = ""
  if ($6 != "-") rest = ", \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": " quoted($6) "}]"
  if ($2 == "deb")
    rest = rest ", \"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", " \
      "\"referenceLocator\": " quoted("pkg:deb/debian/" $3 "@" $4 "?arch=" $5) "}]"
  packages = packages ",\n  " component(id, $3, $4, $7, rest)
  relations = relations ",\n  {\"spdxElementId\": \"SPDXRef-main\", \"relationshipType\": " quoted($1) ", \"relatedSpdxElement\": " quoted(id) "}"
}
END {
  if (bad || NR == 0) { if (!bad) print "sbom: no components on standard input" > "/dev/stderr"; exit 1 }
  print "{\"spdxVersion\": \"SPDX-2.3\", \"dataLicense\": \"CC0-1.0\", \"SPDXID\": \"SPDXRef-DOCUMENT\","
  print " \"name\": " quoted(name "-" version) ", \"documentNamespace\": " quoted("https://spdx.org/spdxdocs/" name "-" version) ","
  print " \"creationInfo\": {\"created\": " quoted(created) ", \"creators\": [\"Tool: muster-packaging\"]},"
  print " \"packages\": [\n  " component("SPDXRef-main", name, version, "-", ", \"licenseDeclared\": \"Apache-2.0\"") packages "\n ],"
  print " \"relationships\": [\n  {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-main\"}" relations "\n ]}"
}'
