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
go test -race -count=1 -timeout=20m ./...
go test -count=1 -run 'AnHour|ClocksDrift|AllocationsOfAPair' . # what the race detector would make too long, or wrong
go test -count=1 -run Simulation ./cluster/birth # one goroutine: with the race detector it walks less far
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
(cd judge && go vet ./... && go test -count=1 ./...) # a module of its own, for the sake of its dependency
(cd deploy/check && go vet ./... && go test -count=1 ./...) # likewise: the types of Kubernetes
(cd adapters/mortiseotel && go vet ./... && go test -race -count=1 ./...) # likewise: OpenTelemetry. promtool checks the alert rules; skipped, loudly, without it
(cd fence/sqltest && go vet ./... && go test -race -count=1 ./...) # likewise: drivers. SQLite, and a PostgreSQL that it starts itself; skipped, loudly, without one
