#!/usr/bin/env bash
# Checks the models of this directory with Spin: that the protocol holds, that the check reaches the
# interesting states, and that each planted bug is found. It prints a table and exits with 0 only if
# every row is as expected. It installs nothing and leaves nothing behind.
#
#   model/run.sh          everything: two minutes on one core, about 1 GB, at most 2 GB
#   model/run.sh -quick   smaller bounds, for every merge: 20 seconds on two cores; nothing if the
#                         models are those with which everything passed (model/passed)
#   model/run.sh NAME     only the rows whose name contains NAME
set -euo pipefail
cd "$(dirname "$0")"

models=$(cat lease.pml run.sh | cksum)
if [ "$*" = -quick ] && [ "$models" = "$(cat passed 2>/dev/null)" ]; then
  printf 'the models are unchanged since everything has passed\n'
  exit
fi
for tool in spin gcc; do
  if ! command -v "$tool" >/dev/null; then
    printf 'model/run.sh needs %s, which is not installed. Debian and Ubuntu: %s\n' "$tool" \
      'apt-get install -y --no-install-recommends spin gcc libc6-dev' >&2
    exit 3
  fi
done

quick=
only=
for argument in "$@"; do
  case $argument in
  -quick) quick=yes ;;
  -*) printf 'usage: model/run.sh [-quick] [NAME]\n' >&2; exit 2 ;;
  *) only=$argument ;;
  esac
done

# The bounds of each scenario; lease.pml describes the scenarios. -quick uses small for lease.
lease='-DTTL=3 -DTERMS=2 -DEPOCHS=2 -DNUMBERS=1 -DCANCELS=0'
calls='-DSTILL -DTERMS=3 -DEPOCHS=2 -DNUMBERS=2 -DCANCELS=1'
opening='-DOPENING -DTTL=3 -DTERMS=1 -DEPOCHS=2 -DNUMBERS=1 -DCANCELS=0'
drift='-DDRIFT -DTTL=3 -DTERMS=2 -DEPOCHS=1 -DNUMBERS=1 -DCANCELS=0'
copy='-DCOPY -DTTL=2 -DTERMS=1 -DEPOCHS=2'
later_copy='-DCOPY -DTTL=2 -DTERMS=2 -DEPOCHS=2 -DORIGINAL_STAYS'
pair='-DPAIR -DTTL=2 -DTERMS=1 -DEPOCHS=1 -DNUMBERS=1 -DCANCELS=0'
live='-DLIVE -DTTL=2 -DTERMS=2 -DEPOCHS=2 -DNUMBERS=2 -DCANCELS=0'
stay='-DSTAY -DTTL=2 -DTERMS=2 -DEPOCHS=2 -DNUMBERS=1 -DCANCELS=0'
stay_live='-DSTAY -DLIVE -DTTL=2 -DTERMS=2 -DEPOCHS=2 -DNUMBERS=1 -DCANCELS=0'
small='-DTTL=2 -DTERMS=2 -DEPOCHS=1 -DNUMBERS=1 -DCANCELS=0'

again='-DTTL=2 -DTERMS=1 -DEPOCHS=1 -DNUMBERS=2 -DCANCELS=0'
moving='-DTTL=2 -DTERMS=2 -DEPOCHS=2 -DNUMBERS=1 -DCANCELS=0'

# Each row is: expected | name | flags, and for "caught" the kind of the error. "holds": no error in
# the whole state space. "reached": the state is reachable. "caught": an error of that kind.
rows() {
  if [ -n "$quick" ]; then
    lease=$small calls='-DSTILL -DTERMS=2 -DEPOCHS=2 -DNUMBERS=2 -DCANCELS=1'
  fi
  printf '%s|%s|%s\n' \
    holds 'lease' "$lease" \
    holds 'calls' "$calls"
  if [ -z "$quick" ]; then
    printf '%s|%s|%s\n' \
      holds 'opening' "$opening" \
      holds 'drift' "$drift" \
      holds 'copy' "$copy" \
      holds 'copy, two terms' "$later_copy" \
      holds 'live' "$live" \
      holds 'pair' "$pair" \
      holds 'stay' "$stay" \
      holds 'stay, live' "$stay_live" \
      reached 'the lock passes on' "$lease -DREACH=handover" \
      reached 'and back' "$calls -DREACH=handback" \
      reached 'it passes on by expiry' "$lease -DREACH=handover_by_expiry" \
      reached 'a wait is cancelled' "$calls -DREACH=cancelled_wait" \
      reached 'a grant crosses a cancel' "$calls -DREACH=cancel_crossed" \
      reached 'a second term' "$lease -DREACH=second_term" \
      reached 'a third term' "$calls -DREACH=last_term" \
      reached 'two leaders at once' "$lease -DREACH=two_leaders" \
      reached 'a hold outlives its leader' "$lease -DREACH=hold_moves" \
      reached 'a renewal comes too late' "$lease -DREACH=late_renewal" \
      reached 'a copy is refused' "$copy -DREACH=refused_copy" \
      reached 'served at the last moment' "$live -DREACH=served" \
      reached 'a stay outlives its leader' "$stay -DREACH=stay_moves" \
      reached 'a stay is recalled' "$stay_live -DREACH=passed_on"
  else
    printf '%s|%s|%s\n' reached 'it passes on by expiry' "$lease -DREACH=handover_by_expiry"
  fi
  # Most bugs first break the lemma behind promise 3. BELIEF_ONLY leaves the lemma out, so that the
  # check goes on to the state with two believed holders. ACK_BEFORE_APPLIED is the exception: there
  # a dead session looks alive to its client, which holds nothing by then.
  local belief='|promise3_believer_does_not_own'
  local opened='-DOPENING -DTTL=2 -DTERMS=1 -DEPOCHS=1 -DNUMBERS=1 -DCANCELS=0'
  printf '%s|%s|%s\n' \
    caught STALE_ACK "$lease -DBELIEF_ONLY$belief" \
    caught DEADLINE_FROM_ACK "$lease -DBELIEF_ONLY$belief" \
    caught NO_EXTEND "$lease -DBELIEF_ONLY$belief" \
    caught ACK_WHILE_EXPIRING "$again -DBELIEF_ONLY$belief" \
    caught EXPIRE_IN_LATER_TERM "$moving -DBELIEF_ONLY$belief" \
    caught ACK_BEFORE_APPLIED "$moving|promise3_lease_without_session" \
    caught REVIVE_AFTER_LOSS "$lease -DBELIEF_ONLY$belief" \
    caught SECOND_SENDING "$opened -DBELIEF_ONLY$belief" \
    caught NO_MARGIN "$drift -DBELIEF_ONLY$belief" \
    caught RENEW_OLD_EPOCH \
    "-DCOPY -DTTL=2 -DTERMS=1 -DEPOCHS=2 -DORIGINAL_STAYS|copies_believe_too_long" \
    caught CANCEL_DROPPED "$calls|promise6_something_is_left" \
    caught GRANT_LOST \
    "-DLIVE -DTTL=2 -DTERMS=1 -DEPOCHS=2 -DNUMBERS=2 -DCANCELS=0|promise4_waiter_is_not_served" \
    caught PASS_AFTER_RELEASE "$stay|promise3_believer_does_not_own" \
    caught FREE_NOT_NAMED "$stay|promise3_believer_does_not_own" \
    caught RECALL_TOLD_ONCE "$stay_live|promise4_waiter_is_not_served" \
    caught RECALL_UNHEEDED "$stay_live|promise4_waiter_is_not_served"
}

work=$(mktemp -d)
# stop ends what the script has started. Each row has its own process group, since it has children.
stop() {
  local pid
  for pid in $(jobs -p); do kill -- "-$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

# row NUMBER EXPECTED NAME FLAGS KIND builds and runs one check, and writes its line of the table.
row() {
  local dir=$work/$1 expected=$2 name=$3 flags=$4 kind=$5 verdict
  [ "$expected" != caught ] || flags="$flags -D$name"
  mkdir "$dir"
  cp lease.pml "$dir/"
  cd "$dir"
  # shellcheck disable=SC2086 # flags are several words
  if ! timeout 60 spin -a $flags lease.pml >log 2>&1 ||
    ! gcc -w -O1 -DSAFETY -DCOLLAPSE -DMEMLIM=2000 -DNOFAIR -o pan pan.c >>log 2>&1; then
    verdict='FAILED to build'
  else
    ./pan -E -m100000 -w24 >log 2>&1 || true
    if grep -qE 'depth too small|out of memory|not completed.*memory|aborted' log &&
      ! grep -q 'assertion violated' log; then
      verdict='FAILED: the search is not complete'
    elif grep -q 'errors: 0' log; then
      verdict=$([ "$expected" = holds ] && echo holds || echo 'FAILED: nothing found')
    elif grep -q 'assertion violated' log; then
      verdict=$(sed -n 's/.*assertion violated \([^ ]*\).*/\1/p' log | head -n 1 |
        sed 's/^(.*/grant_while_another_believes/')
      case $expected:$verdict in
      holds:*) verdict="FAILED: $verdict" ;;
      reached:wanted_state) verdict=reached ;;
      reached:*) verdict="FAILED: $verdict" ;;
      caught:"$kind") ;;
      caught:*) verdict="FAILED: $verdict instead of $kind" ;;
      esac
    else
      verdict='FAILED to run'
    fi
  fi
  case $verdict in FAILED*) cp log "$work/failed.$1" ;; esac
  printf '%-8s %-28s %10s %8s  %s\n' "$expected" "$name" \
    "$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' log)" \
    "$(sed -n 's/.*elapsed time \([0-9.]*\).*/\1/p' log | head -n 1)" "$verdict" >"$work/line.$1"
  cd - >/dev/null
  rm -rf "$dir"
}

at_once=1
[ -z "$quick" ] || at_once=$(nproc 2>/dev/null || echo 1)
number=100
set -m # a process group for each row
while IFS='|' read -r expected name flags kind; do
  case $name in *"$only"*) ;; *) continue ;; esac
  number=$((number + 1))
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n || true; done
  row "$number" "$expected" "$name" "$flags" "$kind" &
done < <(rows)
wait
[ "$number" -gt 100 ] || { printf 'no row has that name\n' >&2; exit 2; }

printf '%-8s %-28s %10s %8s  %s\n' expected name states seconds verdict
cat "$work"/line.*
if grep -q FAILED "$work"/line.*; then
  for log in "$work"/failed.*; do
    printf '\n%s\n' "$(cat "$work/line.${log##*.}")"
    grep -vE '^\s*$|unreached|lease.pml:[0-9]+, state' "$log" | head -n 20
  done
  exit 1
fi
if [ -z "$quick$only" ]; then
  printf '%s\n' "$models" >passed
fi
