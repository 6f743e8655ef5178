#!/usr/bin/env bash
# Looks for known vulnerabilities that the code of this repository reaches, in its dependencies and in
# the standard library of the installed Go, with govulncheck. It scans the modules that users build,
# without their tests and without the benchmarks.
#
#   ./vulncheck.sh
#
#   MORTISE_VULNDB            another copy of the database: https://... or file:///...
#   MORTISE_VULNDB_PATIENCE   seconds to wait for the database (15)
#   MORTISE_GOVULNCHECK       a program to run in place of the pinned govulncheck
#
# It succeeds if nothing is found. It is skipped, loudly and with success, only if the database or the
# program cannot be fetched, and both are fetched before anything is scanned. A scan that has begun is
# never skipped: a finding, a scan that fails and one that does not end in ten minutes are failures.
set -euo pipefail
cd "$(dirname "$0")"

version=v1.9.0 # of golang.org/x/vuln. It is no requirement of any go.mod here
database=${MORTISE_VULNDB:-https://vuln.go.dev}
patience=${MORTISE_VULNDB_PATIENCE:-15}

skip() {
  printf '\n*** SKIPPED: the search for known vulnerabilities. %s ***\n\n' "$1" >&2
  exit 0
}
command -v timeout >/dev/null || timeout() { shift; "$@"; } # not on every system

command -v curl >/dev/null || skip 'curl is not installed, which tells whether the database can be reached'
curl -fsSL --max-time "$patience" -o /dev/null "$database/index/db.json" || skip "$database cannot be reached"

scanner=${MORTISE_GOVULNCHECK:-}
if [ -z "$scanner" ]; then
  tools=$(mktemp -d)
  trap 'rm -rf "$tools"' EXIT
  # Not go run, which turns every exit code into 1.
  GOBIN=$tools GOFLAGS= timeout 300 go install "golang.org/x/vuln/cmd/govulncheck@$version" ||
    skip "govulncheck $version cannot be fetched and built"
  scanner=$tools/govulncheck
fi

failed=0
for module in . adapters/mortiseotel; do
  code=0
  timeout 600 "$scanner" -db "$database" -C "$module" ./... || code=$?
  case $code in
    0) ;;
    3) failed=1; printf '\n*** vulnerabilities are reached from module %s: update what is named above ***\n\n' "$module" >&2 ;;
    *) failed=1; printf '\n*** the search for known vulnerabilities in module %s failed (exit code %d) ***\n\n' "$module" "$code" >&2 ;;
  esac
done
exit "$failed"
