#!/usr/bin/env bash
# Simulates whole clusters, one seed after another, on all cores: ten virtual minutes each, judged by the checkers and by both judges of
# the recorded history.
#
#   ./sim.sh [-b] [-s FIRST] [-n COUNT] [-t TIME] [-d DIR]
#
#   -b        births instead: 2, 3 or 5 instances found one group under cuts and restarts; with -n 20000 under all
#   -s FIRST  the first seed (1)
#   -n COUNT  how many seeds; with -t at least so many (150, or 2000 births)
#   -t TIME   go on until so much time has passed (4m, 30s)
#   -d DIR    keep in DIR how far it has come, and go on from there: a campaign can be stopped at any time
#
# It stops at the first seed that fails, with the command that repeats it and the last events.
set -euo pipefail
cd "$(dirname "$0")"

test=TestSeeds first=1 count= time=0s state=
while getopts bs:n:t:d: option; do
  case $option in
    b) test=TestBirths ;;
    s) first=$OPTARG ;;
    n) count=$OPTARG ;;
    t) time=$OPTARG ;;
    d) state=$OPTARG ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
[ -n "$count" ] || { [ "$test" = TestBirths ] && count=2000 || count=150; }

work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
(cd judge && go test -c -o "$work/seeds" .)
[ -z "$state" ] || { mkdir -p "$state" && state=$(cd "$state" && pwd); }

# One process for each core, since the source of raft's random numbers is the process's. Process i of n runs every n-th seed.
workers=$(getconf _NPROCESSORS_ONLN)
for ((i = 0; i < workers; i++)); do
  if [ -n "$state" ]; then
    export MORTISE_STATE=$state/$test-$i-of-$workers-from-$first
  fi
  MORTISE_SEED=$((first + i)) MORTISE_STEP=$workers MORTISE_TIME=$time MORTISE_LEAST=$(((count + workers - 1 - i) / workers)) \
    "$work/seeds" -test.run "^$test\$" -test.v -test.timeout 0 >"$work/$i.txt" 2>&1 &
done

failed=0
for ((i = 0; i < workers; i++)); do
  wait -n || failed=1
  [ "$failed" = 0 ] || break
done
for ((i = 0; i < workers; i++)); do
  if [ "$failed" = 0 ]; then
    sed -n 's/^.*_test.go:[0-9]*: \([0-9]* runs\)/\1/p' "$work/$i.txt"
  elif grep -q '^--- FAIL\|^panic' "$work/$i.txt"; then
    cat "$work/$i.txt" >&2
  fi
done
exit "$failed"
