#!/usr/bin/env bash
# Runs mortise as real processes, each on a machine of its own (a network namespace), that are killed, leave, are cut off and move; see
# internal/proctest/doc.go. It needs root and the command ip, and says so loudly where it has not got them.
#
#   ./proctest.sh [-part] [-n COUNT] [-j COUNT] [-run REGEXP] [-keep DIR] [-bug NAME]
#
#   -part        what every merge runs: three minutes
#   -n COUNT     so many times in a row, until the first that fails (1)
#   -j COUNT     so many scenarios at a time (2)
#   -run REGEXP  only these, as go test -run takes it
#   -keep DIR    leave all logs and histories below DIR
#   -bug NAME    with a planted bug (see planted.sh) in all instances: then it has to fail
#
# It prints a line for each scenario, and how long nobody could be granted a free lock after each departure.
set -euo pipefail
cd "$(dirname "$0")"

want=all count=1 scenarios=2 only=. keep=() overlay=() bug=
while [ $# -gt 0 ]; do
  case $1 in
    -part) want=part; shift; continue ;;
    -n) count=${2:?} ;;
    -j) scenarios=${2:?} ;;
    -run) only=${2:?} ;;
    -keep) mkdir -p "${2:?}" && keep=(-artifacts -outputdir "$(cd "$2" && pwd)") ;;
    -bug) bug=${2:?} ;;
    *) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export CGO_ENABLED=0 # Go's own resolver in the instances: it reads the resolv.conf of their machines
if [ -n "$bug" ]; then
  export MORTISE_BUG=$bug
  overlay=(-overlay "$(go run ./internal/mutants/overlay "$work/source")")
fi
go build "${overlay[@]}" -o "$work/instance" ./internal/proctest/instance
go build "${overlay[@]}" -tags nextrules -o "$work/instance-next" ./internal/proctest/instance
go test -c -o "$work/proctest" ./internal/proctest
cd internal/proctest

# What the tests print belongs to the scenario named before it. Names of files and lines are for who repairs the tests, not for the reader.
readable() {
  grep --line-buffered -v '^=== [RPCA]\|^ *--- SKIP\|left out of' | sed -uE 's/^=== NAME +/\n/; s/^( *)[a-z_]+_test\.go:[0-9]+: /\1/'
}

export MORTISE_PROCTEST=$want MORTISE_PROCTEST_INSTANCES=$work
for ((i = 1; i <= count; i++)); do
  began=$SECONDS
  "$work/proctest" -test.v -test.count 1 -test.parallel "$scenarios" -test.timeout 90m -test.run "$only" "${keep[@]/#-/-test.}" 2>&1 | tee "$work/out" | readable
  if grep -q 'SKIPPED:' "$work/out"; then
    printf '\n%s\n\n' "$(grep -o '\*\*\* SKIPPED:.*' "$work/out" | sort -u)" >&2
  fi
  printf 'process tests: pass %d of %d, %d s\n' "$i" "$count" "$((SECONDS - began))"
done
