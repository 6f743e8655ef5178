#!/usr/bin/env bash
# Runs everything that must pass before a merge: format, vet, builds for the other systems, all
# tests, the race detector, simulations, planted bugs, real processes, and the nested modules.
#
#   ./test.sh [-long]
#
#   -long  the race detector on every test, more seeds, every planted bug and all of
#          scripts/proctest: about two hours, every night
#
# It prints each step and the time at which it begins. A step is skipped, with a message, if
# something that it needs is not installed.
set -euo pipefail
cd "$(dirname "$0")"
# The garbage collector runs less often than by default, which saves a quarter of the CPU time.
export GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-2GiB}
case ${1-} in
  '') long=false ;;
  -long) long=true ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

steps=$(grep -c '^ *step "' "$0") at=0
if $long; then
  steps=$((steps + $(grep -c '^nightly "' "$0")))
fi
step() { # its name, and the command
  at=$((at + 1))
  printf '\n[%d of %d, %dm%02ds] %s\n' "$at" "$steps" $((SECONDS / 60)) $((SECONDS % 60)) "$1" >&2
  "${@:2}"
}
nightly() {
  if $long; then
    step "$@"
  fi
}
# nested vets and tests a nested module, with the given flags of go test.
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
    GODEBUG=fips140=$mode go test -count=1 ./internal/credentials ./internal/capability \
      ./internal/nodeid
  done
  # The same with the frozen module. Go 1.26's own module finds no entropy in fake time, in which
  # most tests of transport run.
  GOFIPS140=v1.0.0 go test -count=1 -run 'TLS|Real|Hello|Impostor|ManInTheMiddle' ./transport
}

# These packages run without the race detector. The cores have no goroutines, so it would find
# nothing and take ten times as long. Programs and pages take minutes under it, so they run under it
# every night only.
plain=$(go list ./cluster/founding ./cluster/voters ./lockfsm/... \
  ./internal/{policy,plain,mutants/...,sim,history,process} ./examples/... ./console ./cmd/...)
longest=$(go list ./internal/e2e) # it takes longest, so it begins first
raced="$longest $(go list ./... | grep -vxF "$plain" | grep -vxF "$longest")"
# These tests take minutes under the race detector, and others run the same code under it. So they
# run without it.
hours='ALossyNetwork|TestScale$|TestRecover$|RecoveredWithoutTheLate'
hours+='|ShrinkingFromTheLast|FlappingMember|PlainMemberFinds|StrangersStayOutside'
hours+='|RemovedDirector|IdleVoterNotices|DiskThatStaysFull|Scaling|DisksBroken'
hours+='|BrokenDiskIsTold|Hostile|FloodOfValidCalls|AHoldOutlivesItsProcess'
hours+='|ADerivedSecretEndsInTime|WhatRepeatsIsSaidSeldom|EachHoldStaysForItsOwnDelay'
hours+='|LargeCluster'
# These tests would fail under the race detector, or have one goroutine only.
never='AnHour|ClocksDrift|AllocationsOfAPair|Words'
there=$(go list -f '{{.Dir}}' $raced | while read -r dir; do
  ! grep -qsE "^func Test\w*(${hours//$/\\(}|$never)" "$dir"/*_test.go || echo "$dir"
done)
if $long; then
  raced="$longest $(go list ./... | grep -vxF "$longest")"
  skip='^$' seeds=(-t 20m) births=(-n 20000) bugs=() real=() attack=(-t 5m)
else
  skip="$hours|$never" seeds=(-n 120) births=() bugs=(-some -passed) real=(-part) attack=(-t 30s)
fi

step "format" formatted
step "vet, on three systems" systems
absent() { # what is skipped, and the package that it needs
  printf '\n*** SKIPPED: %s. %s is not installed: %s %s ***\n\n' "$1" "$2" \
    'apt-get install -y --no-install-recommends' "$2" >&2
}
command -v chromium >/dev/null || absent "the console in a real browser" chromium
step "cores, programs and pages" go test -p=4 -count=1 $plain # programs and pages mostly wait
# Each test binary gets one processor. Otherwise two goroutines in a bubble of testing/synctest may
# fire timers at once in one context of the race detector, which then crashes inside itself (Go
# 1.26, golang.org/issue/78156; rarely, and with SIGSEGV or "ThreadSanitizer: CHECK failed"). Three
# binaries run at a time, since many wait for the network.
step "all else, under the race detector" \
  go test -race -p=3 -cpu=1 -count=1 -timeout=60m -skip "$skip" $raced
# Long times are mostly waited for, and real processes wait too, so others run at the same time.
times=$(mktemp) machines=$(mktemp) attacks=$(mktemp)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$times" "$machines" "$attacks"' EXIT
go test -count=1 -p=2 -run "$hours|$never" $there >"$times" 2>&1 &
waits=$!
step "simulated clusters" nice scripts/sim "${seeds[@]}"
step "simulated births" nice scripts/sim -b "${births[@]}"
step "long times, attacks, allocations, words (begun with the simulations)" ended "$waits" "$times"
scripts/proctest "${real[@]}" >"$machines" 2>&1 &
processes=$!
step "planted bugs: the tests must notice them" scripts/planted "${bugs[@]}"
nightly "planted bugs: the simulation must notice them" scripts/planted -layers clusters \
  no-margin no-extend stale-ack fifo-broken context-dropped-in-snapshot even-voters \
  leader-removes-itself removed-not-told not-auto-leave small-passes-large permits-not-counted \
  one-of-several-is-enough deadlock-not-seen
step "real processes, each on its own machine (begun with the planted bugs)" \
  ended "$processes" "$machines"
# The limit is high, since the latency under attack depends on the machine.
scripts/attack "${attack[@]}" -p99 10s >"$attacks" 2>&1 &
attacking=$!
if command -v spin >/dev/null; then
  step "the model of the lease hand-over" model/run.sh -quick
else
  absent "the model of the lease hand-over" spin
fi
step "the second judge" nested judge
step "the types of Kubernetes" nested deploy/check
step "everything that users install, from an empty module" scripts/publish-check
step "a process with the secret attacks three others (begun with the model)" \
  ended "$attacking" "$attacks"
# Its result changes with the releases of other modules.
nightly "the newest dependencies, and beside other modules" scripts/versions-check
step "OpenTelemetry, and the alert rules with promtool" nested adapters/mortiseotel -race
step "databases behind a fence: SQLite and PostgreSQL" nested fence/sqltest -race
step "FIPS 140-3" fips
step "known vulnerabilities" scripts/vulncheck
printf '\nall steps passed, after %dm%02ds\n' $((SECONDS / 60)) $((SECONDS % 60)) >&2
