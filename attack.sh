#!/usr/bin/env bash
# Three instances with a secret, as processes, and one more process that has the secret and attacks them in all ways at once; see
# internal/proctest/attack. Linux only.
#
#   ./attack.sh [-t 1h] [-rss 512] [-p99 1s] [-ratio 0] [-keep DIR] [-only TEXT]
#
#   -t TIME      for how long to attack, after a quiet time before it (1h); 60s for a look
#   -rss MIB     resident memory that no instance may pass (512)
#   -p99 TIME    what the p99 of a free lock may not reach while attacked (1s)
#   -ratio N     how often the quiet p99 it may not reach (0: no such limit); for one kind of attack, as -only impostors
#   -keep DIR    leave logs and histories there
#   -only TEXT   only the attacks whose names contain it
#
# It prints figures, and fails if a lock was granted twice, a voter was lost, an instance has ended, or a limit was passed.
set -euo pipefail
cd "$(dirname "$0")"
case ${1:-} in -h | --help | help) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
if [ "$(uname)" != Linux ]; then
  printf '\n*** SKIPPED: the campaign of attacks reads /proc, which only Linux has ***\n\n' >&2
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
go build -o "$work/instance" ./internal/proctest/instance
go build -o "$work/attack" ./internal/proctest/attack
"$work/attack" -instance "$work/instance" "$@"
