#!/usr/bin/env bash
# Runs everything that must pass before a merge: format, vet, also for another system, all
# tests, the race detector, simulations, planted bugs, real processes, and the nested modules.
#
#   ./test.sh [-long]
#
#   -long  run every test with the race detector, more seeds, every planted bug and all of
#          scripts/proctest; this takes about two hours, and CI does it every night
#
# It prints each step and the time at which the step begins. A step whose programs are not installed
# is skipped with a message.
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
step() { # its arguments: a name and the command
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
systems() { # its arguments: the systems
  for system; do
    GOOS=$system go vet ./... # type-checks every package and test for that system
  done
}
ended() { # its arguments: the process and its output
  local failed=0
  wait "$1" || failed=$?
  cat "$2"
  return "$failed"
}
fips() { # runs tests in FIPS 140-3 mode
  for mode in on only; do
    GODEBUG=fips140=$mode go test -count=1 ./internal/credentials ./internal/capability \
      ./internal/nodeid
  done
  # The same mode with the frozen module. Most tests of transport run in fake time, in which Go
  # 1.26's own module finds no entropy.
  GOFIPS140=v1.0.0 go test -count=1 -run 'TLS|Real|Hello|Impostor|ManInTheMiddle' ./transport
}

# The tests of these packages run without the race detector. The cores have no goroutines, so the
# detector would find nothing and make them ten times slower. The tests of programs and pages take
# minutes with it, so they run with it only every night.
plain=$(go list ./cluster/founding ./cluster/voters ./lockfsm/... \
  ./internal/{policy,plain,mutants/...,sim,whole/...,history,process} ./examples/... ./console \
  ./cmd/...)
longest=$(go list ./internal/e2e) # begins first, because it takes longest
raced="$longest $(go list ./... | grep -vxF "$plain" | grep -vxF "$longest")"
# With the race detector these tests take seconds to minutes each, half of the time of all tests.
# They run without it, because other tests run the same code with it.
hours='ALossyNetwork|TestScale$|TestRecover$|RecoveredWithoutTheLate'
hours+='|ShrinkingFromTheLast|FlappingMember|PlainMemberFinds|StrangersStayOutside'
hours+='|RemovedDirector|IdleVoterNotices|DiskThatStaysFull|Scaling|DisksBroken'
hours+='|BrokenDiskIsTold|Hostile|FloodOfValidCalls|AHoldOutlivesItsProcess'
hours+='|ADerivedSecretEndsInTime|WhatRepeatsIsSaidSeldom|EachHoldStaysForItsOwnDelay'
hours+='|LargeCluster|MemberThatStopsReading|TooManyCallers|SurvivesTheLossOfAll|WhereMuchHappens'
hours+='|OtherServices|KeepLinksToEachOther|AMinuteApart|AnyTwoOfFive|TellsOfAllReaders'
hours+='|RollingRestart|OnOneWay|AtMostFiveLines|MistakesOfACluster|RenewedUnderALock'
hours+='|OutliveTheRestart|WhileASnapshotIsSent|OneLineForAChange|VoterVotesAgain'
hours+='|SettingsAreAdopted|TakesOneEntry|ThePictureIsBounded'
hours+='|CostsTheSameBeside|LongCutHeals|WipedDirectory'
hours+='|RapidResets|AnsweredQuestionsAre|OneSecretHas|OneSecretOpens'
hours+='|LosesEachDirectory|MoreInstancesThan|AnOldBuildIs|ASlowDiskCosts|ADirectoryPutBack'
hours+='|SecondProcessOfALiving|TheOldDirectoryIs|EveryPairOfThings'
# These tests would fail with the race detector, or have only one goroutine.
never='AnHour|ClocksDrift|AllocationsOfAPair|Words'
there=$(go list -f '{{.Dir}}' $raced | while read -r dir; do
  ! grep -qsE "^func Test\w*(${hours//$/\\(}|$never)" "$dir"/*_test.go || echo "$dir"
done)
if $long; then
  raced="$longest $(go list ./... | grep -vxF "$longest")"
  skip='^$' seeds=(-t 20m) births=(-n 20000) bugs=() real=()
  attack=(-t 5m) heavy=(-race)
else
  skip="$hours|$never" seeds=(-n 60) births=() bugs=(-some -passed) real=(-part)
  attack=(-t 30s) heavy=()
fi

step "format" formatted
step "vet, on two systems" systems linux windows
nightly "vet, on macOS" systems darwin
absent() { # its arguments: the step to skip, and the package that the step needs
  printf '\n*** SKIPPED: %s. %s is not installed: %s %s ***\n\n' "$1" "$2" \
    'apt-get install -y --no-install-recommends' "$2" >&2
}
command -v chromium >/dev/null || absent "the console in a real browser" chromium
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
  absent "fencing and migrations on PostgreSQL" postgresql
# Four run at a time, because the tests of programs and pages mostly wait.
step "cores, programs and pages" go test -p=4 -count=1 $plain
# Each test binary gets one processor. With more, two goroutines in a bubble of testing/synctest may
# fire timers simultaneously in one context of the race detector, which then rarely crashes with
# SIGSEGV or "ThreadSanitizer: CHECK failed" (Go 1.26, golang.org/issue/78156). Three binaries run
# at a time, because many wait for the network.
step "all else, under the race detector" \
  go test -race -p=3 -cpu=1 -count=1 -timeout=60m -skip "$skip" $raced
# These steps mostly wait, so they run at the same time.
times=$(mktemp) machines=$(mktemp) attacks=$(mktemp)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$times" "$machines" "$attacks"' EXIT
go test -count=1 -p=2 -run "$hours|$never" $there >"$times" 2>&1 &
waits=$!
step "simulated clusters" nice scripts/sim "${seeds[@]}"
nightly "whole nodes from seeds" nice scripts/whole -n 500
step "simulated births" nice scripts/sim -b "${births[@]}"
nightly "the trace points of raft" env MORTISE_SEEDS=20 \
  nice go test -count=1 -tags with_tla -run TestRaftTrace ./internal/sim
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
# The limits are generous, since latency and rates under attack depend on the machine and on the
# steps beside it.
scripts/attack "${attack[@]}" -p99 10s -rate 0.05 -terms 20 >"$attacks" 2>&1 &
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
# At a merge, those with many dependencies run without the race detector, because they are slow to
# build with it.
step "the interface of locks" nested locker -race
step "one Locker of two" nested adapters/mortisepair -race
step "plugs: gocron" nested adapters/mortisegocron -race -cpu=1
step "plugs: goose, with SQLite and PostgreSQL" nested adapters/mortisegoose -race
step "plugs: golang-migrate, with SQLite and PostgreSQL" nested adapters/mortisemigrate -race
step "plugs: CertMagic" nested adapters/mortisecertmagic -race
step "plugs: methods of redsync, redislock, etcd" nested adapters/mortisedropin -race -cpu=1
step "the same tests with redsync and redislock" nested adapters/mortisedropin/compare "${heavy[@]}"
step "plugs: tusd" nested adapters/mortisetusd -race
step "plugs: Vault's SDK" nested adapters/mortisevault "${heavy[@]}"
step "plugs: servers of net/http and gRPC" nested adapters/mortiseserver -race -cpu=1
step "plugs: electors of client-go" nested adapters/mortisekubernetes -cpu=1 "${heavy[@]}"
step "an example that migrates SQLite" nested examples/migrations -race
step "an example with two plugs on one node" nested examples/plugs -race
step "a project that requires only the interface" nested examples/foreign
step "locks in asynq, river, watermill, temporal" nested examples/queues "${heavy[@]}"
step "databases behind a fence: SQLite and PostgreSQL" nested fence/sqltest -race
step "FIPS 140-3" fips
step "known vulnerabilities" scripts/vulncheck
printf '\nall steps passed, after %dm%02ds\n' $((SECONDS / 60)) $((SECONDS % 60)) >&2
