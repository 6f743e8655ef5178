#!/usr/bin/env bash
# Runs everything that must pass before a merge: format, vet, also for another system, all
# tests, the race detector, simulations, planted bugs, real processes, and the nested modules.
#
#   ./test.sh [-long] [-k]
#
#   -k     go on after a step that has failed
#   -long  run every test with the race detector, more seeds, every planted bug and all of
#          scripts/proctest; this takes more than two hours, and CI does it every night
#
# Three steps run at a time, and later four. It prints each step when it has ended, with the times
# at which it began and ended and the seconds of processors that it took. A step whose programs are
# not installed is skipped with a message.
#
# A test says itself that it is slow (internal/lab/slow). At a merge go test gets -short.
set -euo pipefail
cd "$(dirname "$0")"
# The garbage collector runs less often than by default, which saves a quarter of the CPU time.
export GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-2GiB}
# By default the race detector lets each test binary wait for a second at its end.
export GORACE=${GORACE:-atexit_sleep_ms=0}
long=false go_on=false failed=0
for argument; do
  case $argument in
    -long) long=true ;;
    -k) go_on=true ;;
    *) sed -n '2,16s/^# \{0,1\}//p' test.sh >&2; exit 2 ;;
  esac
done

steps=$(grep -c '^ *step "' "$0")
if $long; then
  steps=$((steps + $(grep -c '^nightly "' "$0")))
fi
work=$(mktemp -d)
trap quit EXIT
trap 'exit 130' INT TERM

lanes=3 at=0 shown=0
names=() began=() ended=() pids=()
# quit ends the steps that still run, and prints the end of what they have printed.
quit() {
  local i
  for i in "${!pids[@]}"; do
    kill -- "-${pids[i]}" 2>/dev/null || true
    printf '\n*** ended before its end: %s ***\n%s\n' "${names[i]}" \
      "$(tail -n 20 "$work/$i.out" 2>/dev/null)" >&2
  done
  rm -rf "$work"
}
clock() { printf '%dm%02ds' $(($1 / 60)) $(($1 % 60)); }
# step begins a step when fewer than $lanes run; its arguments: a name and the command.
step() {
  while [ "${#pids[@]}" -ge "$lanes" ]; do finish; done
  at=$((at + 1))
  names[at]=$1 began[at]=$SECONDS
  printf '%s begins: %s\n' "$(clock "$SECONDS")" "$1" >&2
  set -m # so that the step has a group of processes, which can be ended together
  (
    trap 'times >"$work/$at.time"' EXIT # of the shell and of its children
    "${@:2}"
  ) </dev/null >"$work/$at.out" 2>&1 &
  pids[at]=$!
  set +m
}
nightly() {
  if $long; then
    step "$@"
  fi
}
# finish waits until a step ends, and prints the steps that have ended, in the order in which they
# began. Without -k, a step that has failed is printed at once and ends the run.
finish() {
  local pid code=0 i
  wait -n -p pid "${pids[@]}" || code=$?
  for i in "${!pids[@]}"; do
    if [ "${pids[i]}" = "$pid" ]; then
      unset "pids[i]"
      ended[i]=$SECONDS
      if [ "$code" != 0 ]; then
        names[i]+=" *** FAILED ***" failed=$code
        $go_on || { show "$i"; exit "$code"; }
      fi
    fi
  done
  while [ -n "${ended[shown + 1]-}" ]; do
    shown=$((shown + 1))
    show "$shown"
  done
}
seconds() { # its argument: a file that the builtin times has written
  awk '{ gsub(/[ms]/, " "); sum += 60 * ($1 + $3) + $2 + $4 } END { printf "%d", sum }' "$1"
}
show() { # its argument: the number of a step that has ended
  printf '\n[%d of %d, %s to %s, %s s of processors] %s\n' "$1" "$steps" "$(clock "${began[$1]}")" \
    "$(clock "${ended[$1]}")" "$(seconds "$work/$1.time")" "${names[$1]}" >&2
  cat "$work/$1.out" >&2
}
# tests runs go test, at a low priority, because a step beside it may measure times; its arguments:
# flags, --, and packages. At a merge a test that has failed has a second chance: if it passes five
# times by itself, on the machine as busy as before, the step goes on, and the end of the run names
# the test as flaky, which is a bug to mend. There is no second chance with -long, after a data
# race, a panic, or a violation that a judge has found, nor if anything but a named test has failed.
tests() {
  renice -n 10 -p "$BASHPID" >/dev/null
  local flags=() out code=0 flaky package name again
  while [ "$1" != -- ]; do flags+=("$1"); shift; done
  shift
  out=$(mktemp -p "$work")
  go test "${flags[@]}" "$@" 2>&1 | tee "$out" || code=$?
  [ "$code" != 0 ] || return 0
  ! $long && ! grep -q "$hopeless" "$out" || return "$code"
  flaky=$(failures <"$out") && [ -n "$flaky" ] || return "$code"
  while read -r package name; do
    printf '\n%s of %s has failed. Five more times:\n' "$name" "$package"
    again=$(go test "${flags[@]}" -run "^$name\$" -count=5 "$package" 2>&1) ||
      { printf '%s\n' "$again"; return "$code"; }
    [ "${again/no tests to run/}" = "$again" ] || return "$code"
    printf 'passed\n'
    printf '%s of %s\n' "$name" "$package" >>"$work/flaky"
  done <<<"$flaky"
}
hopeless='DATA RACE\|^panic: \|^fatal error: \|SIGQUIT: quit\|history: [a-z]*: \|bugs, the first'
# failures prints the package and the name of each test that has failed, from the output of go test.
# It fails if a package has failed without one.
failures() {
  awk '/^--- FAIL: / { name[++n] = $3 }
    /^ok  / { n = 0 }
    /^FAIL\t/ { if (n == 0) exit 1; for (; n > 0; n--) print $2, name[n] }'
}
# nested vets and tests a nested module, with the given flags of go test.
nested() { (cd "$1" && tests -vet=all "${short[@]}" -count=1 "${@:2}" -- ./...); }

# analyzed runs mortisevet on modules of this tree: it finds no mistake there.
analyzed() { # its arguments: their go.mod
  local mod code=0
  (cd adapters/mortisevet && go build -o "$work/mortisevet" .)
  for mod; do
    (cd "$(dirname "$mod")" && go vet -vettool="$work/mortisevet" ./...) || code=$?
  done
  return "$code"
}

whole() { # its arguments: those of scripts/whole, which needs one version of Go
  local needs
  needs=$(sed -n 's/^const Go = "\(.*\)"$/\1/p' internal/lab/whole/native/native.go)
  case "$(uname) $(go env GOVERSION)" in
    "Linux $needs" | "Linux $needs".*) nice scripts/whole "$@" ;;
    *) printf 'SKIPPED: this needs Linux and %s\n' "$needs" ;;
  esac
}
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
bits() { # the same where an int has 32 bits, and runs tests there
  GOARCH=386 go vet ./...
  if ! GOARCH=386 go run ./cmd/mortise version; then
    printf 'SKIPPED: this machine runs no programs with 32 bits\n'
    return
  fi
  GOARCH=386 go test -short -count=1 . ./counter ./fence ./lockfsm ./raftlog/... ./session/... \
    ./shard
}
fips() { # runs tests in FIPS 140-3 mode
  for mode in on only; do
    GODEBUG=fips140=$mode go test -count=1 ./internal/credentials ./internal/capability \
      ./internal/nodeid
  done
}
frozen() { # the same mode with the frozen module, for which all packages are compiled anew
  # Most tests of transport run in fake time, in which Go 1.26's own module finds no entropy.
  GOFIPS140=v1.0.0 go test -count=1 -run 'TLS|Real|Hello|Impostor|ManInTheMiddle' ./transport
}

# slow prints the directory and the name of each test that begins with the given call of
# internal/lab/slow.
slow() {
  grep -rl --include='*_test.go' "slow\.$1(" . | xargs -r awk -v call="slow.$1(t)" '
    /^func Test/ { name = $2; sub(/\(.*/, "", name) }
    index($0, call) == 2 { dir = FILENAME; sub("/[^/]*$", "", dir); print dir, name }' | sort
}
left() { # its arguments: what happens to them, and tests as slow prints them
  [ -z "$2" ] || printf '\n%s: %s\n' "$1" "$(awk '{ print $2 }' <<<"$2" | sort -u | paste -sd' ')" |
    fold -s -w 100 >&2
}

# The tests of these packages run without the race detector. The cores and most tools have no
# goroutines, so the detector would find nothing and make them ten times slower. The tests of
# programs, pages and whole nodes take minutes with it, so they run with it only every night.
plain=$(go list ./cluster/{founding,lead,voters} ./lockfsm/... ./counter ./keys \
  ./internal/{capability,history,modes,nodeid,outside,plain,shown,tofu,variables} \
  ./internal/lab/{check,leftover,limits,mutants/...,policy,process,proof,record,shrink,sim,size} \
  ./internal/lab/{sometimes,timeline,try/...,uses,whole/...} ./examples/... ./console ./cmd/... \
  ./mortisetest ./shard ./barrier)
longest=$(go list ./internal/lab/e2e) # begins first, because it takes longest
raced=$(printf '%s\n' "$longest" && go list ./... | grep -vxF "$plain" | grep -vxF "$longest")
if $long; then
  raced=$(printf '%s\n' "$longest" && go list ./... | grep -vxF "$longest")
  short=() model=() seeds=(-t 20m) births=(-n 20000) nodes=(-n 20000) bugs=() real=()
  attack=(-t 5m) heavy=(-race)
else
  # The tests of the simulation run its seeds 1 to 10.
  short=(-short) model=(-quick) seeds=(-s 11 -n 5) births=(-n 80) nodes=(-n 30)
  bugs=(-some -passed) real=(-part) attack=(-t 10s -quiet 4s) heavy=()
fi
module=$(go list .)
unraced=$(slow UnderRace | while read -r dir name; do
  package=${dir/#./$module}
  [ "$package" = "$longest" ] || ! grep -qxF "$package" <<<"$raced" || echo "$dir" "$name"
done)
if ! $long; then
  left 'run without the race detector at a merge, as seven eighths of internal/lab/e2e' "$unraced"
  left 'run only with -long' "$(slow Nightly)"
fi

absent() { # its arguments: the step to skip, and the package that the step needs
  printf '\n*** SKIPPED: %s. %s is not installed: %s %s ***\n\n' "$1" "$2" \
    'apt-get install -y --no-install-recommends' "$2" >&2
}
command -v chromium >/dev/null || absent "the console in a real browser" chromium
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
  absent "fencing and migrations on PostgreSQL" postgresql

step "format" formatted
# Each test binary gets one processor. With more, two goroutines in a bubble of testing/synctest may
# fire timers simultaneously in one context of the race detector, which then rarely crashes with
# SIGSEGV or "ThreadSanitizer: CHECK failed" (Go 1.26, golang.org/issue/78156).
step "all else, vetted and under the race detector" \
  tests -race -vet=all "${short[@]}" -p=2 -cpu=1 -count=1 -timeout=60m -- $raced
step "whole nodes in one process, without the race detector" \
  tests -vet=off "${short[@]}" -cpu=1 -count=1 -timeout=30m -- $longest
# It begins early because it mostly waits.
step "real processes, each on its own machine" scripts/proctest "${real[@]}"
# Four run at a time, because the tests of programs and pages mostly wait.
step "cores, programs and pages, vetted" \
  tests -vet=all "${short[@]}" -p=4 -count=1 -timeout=30m -- $plain
step "tests without the race detector: long times, attacks, allocations" \
  tests -vet=off "${short[@]}" -p=2 -count=1 -timeout=30m \
  -run "^($(awk '{ print $2 }' <<<"$unraced" | sort -u | paste -sd'|'))\$" -- \
  $(awk '{ print $1 }' <<<"$unraced" | sort -u)
step "planted bugs: the tests must notice them" scripts/planted "${bugs[@]}"
nightly "planted bugs: the simulation must notice them" scripts/planted -layers clusters \
  no-margin no-extend stale-ack fifo-broken context-dropped-in-snapshot even-voters \
  leader-removes-itself removed-not-told not-auto-leave small-passes-large permits-not-counted \
  one-of-several-is-enough deadlock-not-seen claim-without-upper-bound
step "simulated clusters" nice scripts/sim "${seeds[@]}"
nightly "rare paths of the shells: campaigns must reach them" nice scripts/sometimes
nightly "whole nodes with faults and all Hooks" env MORTISE_FLEETS=hooks \
  nice go test -count=1 -timeout=60m -vet=off ./internal/lab/e2e
nightly "whole nodes with faults and Config.TLS" env MORTISE_FLEETS=tls \
  nice go test -count=1 -timeout=60m -vet=off ./internal/lab/e2e
step "simulated births" nice scripts/sim -b "${births[@]}"
step "whole nodes from seeds" whole "${nodes[@]}"
nightly "the trace points of raft" env MORTISE_SEEDS=20 \
  nice go test -count=1 -tags with_tla -run TestRaftTrace ./internal/lab/sim
# The limits are generous, since latency and rates under attack depend on the machine and on the
# steps beside it.
step "a process with the secret attacks three others" \
  scripts/attack "${attack[@]}" -p99 10s -rate 0.05 -terms 20
step "everything that users install, from an empty module" scripts/publish-check "${real[@]}"
lanes=4 # the rest mostly waits
step "vet, for another system" systems windows
nightly "vet, on macOS" systems darwin
nightly "tests, with 32 bits" bits
if command -v spin >/dev/null; then
  step "the model of the lease hand-over" model/run.sh "${model[@]}"
else
  absent "the model of the lease hand-over" spin
fi
step "the second judge" nested judge
step "the types of Kubernetes" nested deploy/check
# Its result changes with the releases of other modules.
nightly "the newest dependencies, and beside other modules" scripts/versions-check
step "OpenTelemetry, and the alert rules with promtool" nested adapters/mortiseotel "${heavy[@]}"
# At a merge, those that take long with the race detector, or to build with it, run without it.
step "the interface of locks" nested locker -race
step "one Locker of two" nested adapters/mortisepair -race
step "plugs: gocron" nested adapters/mortisegocron -cpu=1 "${heavy[@]}"
step "plugs: cron" nested adapters/mortisecron -race -cpu=1
step "plugs: goose, with SQLite and PostgreSQL" nested adapters/mortisegoose "${heavy[@]}"
step "plugs: golang-migrate, with SQLite and PostgreSQL" \
  nested adapters/mortisemigrate "${heavy[@]}"
step "plugs: CertMagic" nested adapters/mortisecertmagic "${heavy[@]}"
step "plugs: methods of redsync, redislock, etcd" nested adapters/mortisedropin -cpu=1 "${heavy[@]}"
step "the same tests with redsync and redislock" nested adapters/mortisedropin/compare "${heavy[@]}"
step "plugs: tusd" nested adapters/mortisetusd "${heavy[@]}"
step "plugs: Vault's SDK" nested adapters/mortisevault "${heavy[@]}"
step "plugs: servers of net/http and gRPC" nested adapters/mortiseserver -cpu=1 "${heavy[@]}"
step "plugs: electors of client-go" nested adapters/mortisekubernetes -cpu=1 "${heavy[@]}"
step "plugs: the OpenTelemetry Collector" nested adapters/mortisecollector "${heavy[@]}"
step "contrib's interface of the Collector" nested adapters/mortisecollector/compare "${heavy[@]}"
# With the race detector it takes more than five minutes to build.
nightly "whole Collectors with a receiver of contrib" nested adapters/mortisecollector/whole
step "the analyzer of code that uses the locks" nested adapters/mortisevet "${heavy[@]}"
step "the analyzer finds nothing in the library and its examples" analyzed go.mod
nightly "the analyzer finds nothing in all modules" analyzed \
  $(git ls-files '*go.mod' | grep -v testdata)
step "an example that migrates SQLite" nested examples/migrations "${heavy[@]}"
step "an example with two plugs on one node" nested examples/plugs "${heavy[@]}"
step "a project that requires only the interface" nested examples/foreign
step "locks in asynq, river, watermill, temporal" nested examples/queues "${heavy[@]}"
step "databases behind a fence: SQLite and PostgreSQL" nested fence/sqltest "${heavy[@]}"
step "the site of the documents" nested internal/lab/site
step "FIPS 140-3" fips
nightly "FIPS 140-3, with the frozen module" frozen
step "known vulnerabilities" scripts/vulncheck
while [ "${#pids[@]}" -gt 0 ]; do finish; done
if [ -s "$work/flaky" ]; then
  printf '\n*** FLAKY, each a bug to mend: ***\n%s\n' "$(<"$work/flaky")" >&2
fi
[ "$failed" = 0 ] || exit "$failed"
printf '\nall steps passed, after %dm%02ds\n' $((SECONDS / 60)) $((SECONDS % 60)) >&2
