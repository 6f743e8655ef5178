#!/usr/bin/env bash
# Runs every fuzz target of the module, each for the time given as argument (10m if none), as many at a time as -j says (the number of
# cores if nothing), each on one core and at low priority:
#
#   ./fuzz.sh [-j N] [TIME]
#
# It stops at the first find and names it: the input stands in testdata/fuzz/<target>/ then, and every go test fails on it until it is
# mended; commit it together with the cure. The targets are found in the source, so none can be forgotten. The output of each target is
# in a file of a directory that the last line names. It needs bash 5.1.
set -euo pipefail
cd "$(dirname "$0")"

jobs=$(getconf _NPROCESSORS_ONLN)
while getopts j: option; do
  case $option in
    j) jobs=$OPTARG ;;
    *) printf 'usage: %s [-j N] [TIME]\n' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
each=${1:-10m}

packages=$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u)
# shellcheck disable=SC2086 # one word for each package
targets=$(go test -list '^Fuzz' $packages | awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }')
total=$(wc -l <<<"$targets")
if [ "$total" -lt 29 ]; then
  printf 'only %s fuzz targets were found, there must be more:\n%s\n' "$total" "$targets" >&2
  exit 1
fi

outputs=$(mktemp -d)
declare -A running=() # process ID to name
failed=

# The end of the script ends what it has started. Each target has a process group of its own, since the go command has children.
stop() {
  for pid in "${!running[@]}"; do
    kill -- "-$pid" 2>/dev/null || true
  done
  wait 2>/dev/null || true
}
trap stop EXIT
trap 'exit 130' INT TERM

# only_late reports whether a target failed for no other reason than that its time was over while an input was being run: the go command
# then says so, and nothing else, and has written no input (golang/go#75804, mended in Go 1.27).
only_late() {
  ! grep -q 'Failing input written' "$1" &&
    [ "$(sed -n '/^--- FAIL/,$p' "$1" | sed -n 2p)" = '    context deadline exceeded' ] &&
    [ "$(sed -n '/^--- FAIL/,$p' "$1" | sed -n 3p)" = FAIL ]
}

# reap waits for one target to end, and says what came of it.
reap() {
  local pid code=0
  wait -n -p pid "${!running[@]}" || code=$?
  local name=${running[$pid]}
  unset "running[$pid]"
  if [ "$code" -ne 0 ] && ! only_late "$outputs/$name.txt"; then
    failed=$name
    printf 'FOUND by %s: %s\n' "$name" "$outputs/$name.txt" >&2
    tail -n 40 "$outputs/$name.txt" >&2
  else
    printf 'done %s: %s\n' "$name" "$(grep '^fuzz: elapsed' "$outputs/$name.txt" | tail -n 1)"
  fi
}

count=0
set -m # a process group for each job
while read -r package target; do
  while [ "${#running[@]}" -ge "$jobs" ] && [ -z "$failed" ]; do
    reap
  done
  [ -z "$failed" ] || break
  count=$((count + 1))
  name=$(basename "$package")-$target
  printf '%s/%s %s %s for %s\n' "$count" "$total" "$package" "$target" "$each"
  # Without a bound on minimizing, an input that takes another path each time would be minimized for a minute, and nothing run meanwhile.
  nice -n 10 go test -run '^$' -fuzz "^$target\$" -fuzztime "$each" -fuzzminimizetime 100x -parallel 1 "$package" </dev/null >"$outputs/$name.txt" 2>&1 &
  running[$!]=$name
done <<<"$targets"
while [ "${#running[@]}" -gt 0 ] && [ -z "$failed" ]; do
  reap
done

printf '\n%-32s %14s %16s\n' target executions 'new interesting'
while read -r package target; do
  name=$(basename "$package")-$target
  [ -e "$outputs/$name.txt" ] || continue
  awk -v name="$name" '/^fuzz: elapsed/ { for (i = 1; i < NF; i++) { if ($i == "execs:") execs = $(i + 1); if ($i == "interesting:") new = $(i + 1) } }
    END { printf "%-32s %14s %16s\n", name, execs, new }' "$outputs/$name.txt"
done <<<"$targets"
if [ -n "$failed" ]; then
  printf '\n%s has found something; the output is in %s\n' "$failed" "$outputs" >&2
  exit 1
fi
printf '\nnothing found by %s targets; their output is in %s\n' "$total" "$outputs"
