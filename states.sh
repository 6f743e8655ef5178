#!/usr/bin/env bash
# Measures what large states cost, and what they do to those who want a lock meanwhile (internal/e2e/states_test.go): up to a million locks and a hundred
# thousand sessions, with real nodes over loopback. Ten minutes on a quiet machine.
#
#   ./states.sh [-o FILE] [LOCKS/SESSIONS ...]
#
#   -o FILE            write the page there, for example docs/STATES.md; default: standard output
#   LOCKS/SESSIONS     only these, of those in states_test.go
set -euo pipefail
cd "$(dirname "$0")"

out=/dev/stdout
while getopts o: option; do
  case $option in
    o) out=$OPTARG ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
MORTISE_STATES=${*:-all} go test -count=1 -timeout=2h -v -run 'TestBigStates' ./internal/e2e | tee /dev/stderr >"$work/out"

rows() { sed -n "s/^$1 //p" "$work/out"; }
cat >"$work/page" <<PAGE
# Large states

Written by \`./states.sh -o docs/STATES.md${*:+ $*}\`, which measures all of it again ([internal/e2e/states_test.go](../internal/e2e/states_test.go)). $(date -u '+%-d %B %Y'): $(nproc) cores
($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)), $(go env GOVERSION). The budgets of bytes are raised (\`MaxSessionBytes\` 2 GiB, \`MaxGroupBytes\` 4 GiB): the
defaults hold about 350,000 locks. All nodes are in one process and share those cores, and the callers do, too: three voters, an
instance that holds all the locks, and 64 callers who lock and unlock keys of their own on the voters all the time, without a pause. Times in which something happens
are medians of five. The ratio is that of the 99th percentile of Lock meanwhile to that with the same state while nothing happens.

In memory, over loopback TCP, keys of 16 bytes:

| locks held | sessions | taken in | heap of a lock | heap of a session | snapshot | p99 of Lock before | p99 with the state | while a snapshot is taken: for, p99 | while a voter leaves and a new one gets the state: for, p99 |
|---|---|---|---|---|---|---|---|---|---|
$(rows STATES)

The heap of a lock is that of all three voters, of the instance that holds it and of its handle. So much of it is the snapshot that each voter keeps.

With \`Dir\`, all three on one disk:

| locks held | sessions | p99 with the state | while a snapshot is taken and written: for, p99 | a voter that was stopped is ready again after | and has the whole state after | nobody was granted anything after the leader's end for |
|---|---|---|---|---|---|---|
$(rows STATES-DISK)

How each grows:

- **Memory** with the number of locks and of sessions, and with nothing else: names that are not locked cost nothing.
- **A snapshot** costs each voter about 50 ns of processor time for each lock, in steps of 256 locks at the end of a turn: nobody waits for more than one step
  in its turn. Where there are no turns it takes sixteen steps in each millisecond. It is taken after as many bytes
  of log as the last one was long, and up to half as much more, so that it costs as much as the log that it replaces, at most. It is put together, and written to disk, beside everything else.
- **The goal**: while a snapshot is taken or sent the 99th percentile shall be at most five times the usual. The tables say whether it is. The voters seldom take theirs together,
  but the leader does it on the processors, and with \`Dir\` on the disk, that all others here need, too.
- **Room on the disk**, with \`Dir\`: two snapshots, and a log as long as one of them and half as much again, in files of 8 MiB, two more than that needs, that are used over and over and not removed in between.
- **Sending it** to a new voter has a stream of its own. Who receives it builds the state in one go, about 2 µs for each lock, and takes no part meanwhile.
- **A start** reads the snapshot and the log behind it, which is at most half as long again as the snapshot.
- **Renewals** cost the leader about 0.5 µs and three small messages for each, a third of a TTL apart: 10,000 instances with the default TTL of 10 s are 3,000 renewals a second
  (\`go test -run xxx -bench Renewals ./session\`). What is at rest beside them adds nothing.
- **The end of a session** frees all its locks in one command. With a million in one session that is a pause of most of a second for all
  (\`go test -run xxx -bench EndOfASession ./lockfsm\`).
PAGE
cat "$work/page" >"$out"
