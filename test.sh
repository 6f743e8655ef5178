#!/usr/bin/env bash
# Everything that has to hold before a merge: format, vet, builds for the other systems, all tests, the
# race detector, simulations, planted bugs, real processes, and the nested modules.
#
#   ./test.sh [-long]
#
#   -long  the race detector on every test, more seeds, every planted bug and all of scripts/proctest: some
#          two hours, every night
#
# It says which step runs, and since when. What a step needs and cannot find here is skipped, loudly.
set -euo pipefail
cd "$(dirname "$0")"
# The collector runs less often than it would by itself: that saves a quarter of the processor time.
export GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-2GiB}
case ${1-} in
  '') long=false ;;
  -long) long=true ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

steps=$(grep -c '^ *step "' "$0") at=0
if $long; then
  steps=$((steps + $(grep -c '^nightly "' "$0")))
fi
step() { # what it is, and the command
  at=$((at + 1))
  printf '\n[%d of %d, %dm%02ds] %s\n' "$at" "$steps" $((SECONDS / 60)) $((SECONDS % 60)) "$1" >&2
  "${@:2}"
}
nightly() {
  if $long; then
    step "$@"
  fi
}
# nested vets and tests a module of its own, with the given flags of go test.
nested() { (cd "$1" && go vet ./... && go test -count=1 "${@:2}" ./...); }

formatted() {
  local wrong
  wrong=$(gofmt -l .)
  [ -z "$wrong" ] || { printf 'not gofmt-ed:\n%s\n' "$wrong" >&2; return 1; }
}
systems() {
  for system in linux darwin windows; do
    GOOS=$system go vet ./... # type-checks every package and test for that system
  done
}
ended() { # the process and its output
  local failed=0
  wait "$1" || failed=$?
  cat "$2"
  return "$failed"
}
fips() { # FIPS 140-3
  for mode in on only; do
    GODEBUG=fips140=$mode go test -count=1 ./internal/credentials ./internal/capability ./internal/nodeid
  done
  # The same with the frozen module: that of Go 1.26 itself finds no entropy in fake time, in which most
  # tests of transport run.
  GOFIPS140=v1.0.0 go test -count=1 -run 'TLS|Real|Hello|Impostor|ManInTheMiddle' ./transport
}

# What runs without the race detector. The cores have no goroutine, so it would find nothing, and take
# ten times as long; programs and pages take minutes under it, every night.
plain=$(go list ./cluster/founding ./cluster/voters ./lockfsm/... ./internal/{house,plain,mutants/...,sim,history,process} ./examples/... ./console ./cmd/...)
longest=$(go list ./internal/e2e) # it begins first, since it ends last
raced="$longest $(go list ./... | grep -vxF "$plain" | grep -vxF "$longest")"
# Tests that take the race detector minutes, and whose code runs under it in others too. They run without it.
hours='ALossyNetwork|TestScale$|TestRecover$|RecoveredWithoutTheLate|ShrinkingFromTheLast|FlappingMember|PlainMemberFinds|StrangersStayOutside|RemovedDirector|IdleVoterNotices|DiskThatStaysFull|Scaling|DisksBroken|BrokenDiskIsTold|Hostile|FloodOfValidCalls|AHoldOutlivesItsProcess|ADerivedSecretEndsInTime|WhatRepeatsIsSaidSeldom|EachHoldStaysForItsOwnDelay|LargeCluster'
# Tests of which it would make the result wrong, or that have one goroutine.
never='AnHour|ClocksDrift|AllocationsOfAPair|Words'
there=$(go list -f '{{.Dir}}' $raced | while read -r dir; do ! grep -qsE "^func Test\w*(${hours//$/\\(}|$never)" "$dir"/*_test.go || echo "$dir"; done)
if $long; then
  raced="$longest $(go list ./... | grep -vxF "$longest")"
  skip='^$' seeds=(-t 20m) births=(-n 20000) bugs=() real=() attack=(-t 5m)
else
  skip="$hours|$never" seeds=(-n 120) births=() bugs=(-some -passed) real=(-part) attack=(-t 30s)
fi

step "format" formatted
step "vet, on three systems" systems
command -v chromium >/dev/null || printf '\n*** SKIPPED: the console in a real browser. chromium is not installed: apt-get install -y --no-install-recommends chromium ***\n\n' >&2
step "cores, programs and pages" go test -p=4 -count=1 $plain # programs and pages wait for each other
# One processor for each test binary: in a bubble of testing/synctest two goroutines may fire timers at
# once in one context of the race detector, which then crashes inside itself (Go 1.26,
# golang.org/issue/78156; rarely, and with SIGSEGV or "ThreadSanitizer: CHECK failed").
# Three at a time, since many wait for the network.
step "all else, under the race detector" go test -race -p=3 -cpu=1 -count=1 -timeout=60m -skip "$skip" $raced
step "without it: long times, attacks, allocations, words" go test -count=1 -p=2 -run "$hours|$never" $there
step "simulated clusters" scripts/sim "${seeds[@]}"
step "simulated births" scripts/sim -b "${births[@]}"
# Real processes wait most of the time, so the planted bugs run beside them.
machines=$(mktemp)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$machines"' EXIT
scripts/proctest "${real[@]}" >"$machines" 2>&1 &
processes=$!
step "planted bugs: the tests must notice them" scripts/planted "${bugs[@]}"
nightly "planted bugs: the simulation must notice them" scripts/planted -layers clusters no-margin no-extend stale-ack fifo-broken context-dropped-in-snapshot even-voters leader-removes-itself removed-not-told not-auto-leave small-passes-large permits-not-counted one-of-several-is-enough deadlock-not-seen
step "real processes, each on a machine of its own (begun with the planted bugs)" ended "$processes" "$machines"
if command -v spin >/dev/null; then
  step "the model of the lease hand-over" model/run.sh -quick
else
  printf '\n*** SKIPPED: the model of the lease hand-over. spin is not installed: apt-get install -y --no-install-recommends spin ***\n\n' >&2
fi
step "a process with the secret attacks three others" scripts/attack "${attack[@]}" -p99 10s # what it costs in time depends on the machine
step "the second judge" nested judge
step "the types of Kubernetes" nested deploy/check
step "everything that users install, from an empty module" scripts/publish-check
nightly "the newest dependencies, and beside other modules" scripts/versions-check # what it finds changes with others' releases
step "OpenTelemetry, and the alert rules with promtool" nested adapters/mortiseotel -race
step "databases behind a fence: SQLite and PostgreSQL" nested fence/sqltest -race
step "FIPS 140-3" fips
step "known vulnerabilities" scripts/vulncheck
printf '\nall of it holds, after %dm%02ds\n' $((SECONDS / 60)) $((SECONDS % 60)) >&2
