#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, each for the time given as argument (10m if none), and fails on the first
# find. The targets are listed by the go command, so none can be forgotten. What is found stands in testdata/fuzz/<target>/ then, and every
# go test fails on it until it is mended: commit it together with the cure.
set -euo pipefail
cd "$(dirname "$0")"
each=${1:-10m}

targets=$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }')
total=$(wc -l <<<"$targets")
if [ "$total" -lt 15 ]; then
  printf 'only %s fuzz targets were found, there must be more:\n%s\n' "$total" "$targets" >&2
  exit 1
fi

count=0
while read -r package target; do
  count=$((count + 1))
  printf '%s/%s %s %s for %s\n' "$count" "$total" "$package" "$target" "$each"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$each" "$package" </dev/null | tail -n 30
done <<<"$targets"
printf 'nothing found by %s targets\n' "$total"
