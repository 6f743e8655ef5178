#!/usr/bin/env bash
# Everything that has to hold before a merge: format, vet, builds for the other systems, and all tests under the race detector.
set -euo pipefail
cd "$(dirname "$0")"

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
  printf 'not gofmt-ed:\n%s\n' "$unformatted" >&2
  exit 1
fi
go vet ./...
for system in darwin windows; do
  GOOS=$system go vet ./... # type-checks every package and test for that system
done
# One processor for each test binary: in a bubble of testing/synctest two goroutines may fire timers at once in one context of the race detector,
# which then crashes inside itself (Go 1.26, golang.org/issue/78156; rarely, and with SIGSEGV or "ThreadSanitizer: CHECK failed").
# The cores among these packages have no goroutine: the race detector would find nothing, and take ten times as long.
cores=$(go list ./cluster/birth ./cluster/voters ./internal/house ./internal/plain ./internal/planted ./internal/sim)
go test -count=1 $cores
go test -race -cpu=1 -count=1 -timeout=20m $(go list ./... | grep -vxF "$cores")
command -v chromium >/dev/null || printf '\n*** SKIPPED: the console in a real browser. chromium is not installed: apt-get install -y --no-install-recommends chromium ***\n\n' >&2
go test -count=1 -run 'AnHour|ClocksDrift|AllocationsOfAPair|Words' . # what the race detector would make too long, or wrong
go test -count=1 -run LargeCluster ./mortisetest # 64 nodes; 20 under the race detector
go test -count=1 -run Twin ./lockfsm # more seeds than above
./sim.sh -t 4m # as many seeds as that allows, and at least 150
./sim.sh -b
./planted.sh -some # the tests above must notice bugs
./planted.sh -layers clusters no-margin no-extend stale-ack fifo-broken context-dropped-in-snapshot even-voters leader-removes-itself removed-not-told not-auto-leave small-passes-large permits-not-counted one-of-several-is-enough deadlock-not-seen # so must the simulation
if command -v spin >/dev/null; then
  model/run.sh -quick
else
  printf '\n*** SKIPPED: the model of the lease hand-over. spin is not installed: apt-get install -y --no-install-recommends spin ***\n\n' >&2
fi
./proctest.sh -part # real processes in network namespaces; skipped, loudly, where that is not possible
./attack.sh -t 45s -p99 10s # a process with the secret attacks three others in all ways at once; what it costs in time depends on the machine
(cd judge && go vet ./... && go test -count=1 ./...) # a module of its own, for the sake of its dependency
(cd deploy/check && go vet ./... && go test -count=1 ./...) # likewise: the types of Kubernetes
(cd cmd/mortise && go vet ./... && go test -race -count=1 ./...) # likewise: real processes, curl and Python; what is absent is skipped
(cd adapters/mortiseotel && go vet ./... && go test -race -count=1 ./...) # likewise: OpenTelemetry. promtool checks the alert rules; skipped, loudly, without it
(cd fence/sqltest && go vet ./... && go test -race -count=1 ./...) # likewise: drivers. SQLite, and a PostgreSQL that it starts itself; skipped, loudly, without one
for mode in on only; do # FIPS 140-3
  GODEBUG=fips140=$mode go test -count=1 ./internal/credentials ./internal/capability ./internal/nodeid
done
# The same with the frozen module: that of Go 1.26 itself finds no entropy in fake time, in which most
# tests of transport run.
GOFIPS140=v1.0.0 go test -count=1 -run 'TLS|Real|Hello|Impostor|ManInTheMiddle' ./transport
./vulncheck.sh # known vulnerabilities; skipped, loudly, where their database cannot be reached
