//go:build linux

// Attack is a campaign against three instances that run as processes with a secret. Another process
// has the same secret and attacks the instances, while callers on the instances take locks and
// record the results. ../../../scripts/attack builds and runs it.
//
//	attack -instance PROGRAM [-t 1h] [-keep DIR] [-rss 512] [-p99 1s] [-ratio 0] [-only TEXT]
//
// First the load runs alone, for a tenth of -t but at least 5 and at most 60 seconds. Then the
// attacks run for -t. The campaign fails if
//
//   - the recorded history breaks a rule of package internal/history, for example if a lock was
//     granted twice,
//   - an instance has ended, no longer votes, or reports other voters than at the beginning,
//   - the resident memory of an instance was above -rss MiB,
//   - an instance accepted a hello that its sender cannot have signed,
//   - the p99 of the time to be granted a free lock was at least -p99, or at least -ratio times the
//     p99 without attacks. The ratio is meaningful only with -only impostors, because all attacks
//     together use much CPU time.
//
// The campaign prints how often each attack was tried, refused and believed, the locks that were
// granted and lost, the latency with and without attacks, and the largest resident memory.
//
// Guarantees: the campaign ends only processes that it has started. Concurrency: the campaign, the
// three instances and the attacker are processes. Failure: the exit status is 1, and the campaign
// prints one line for each exceeded limit; -keep keeps logs and histories. Limits: the campaign
// needs Linux, because it reads /proc. All processes share one machine, so the attacker's CPU time
// adds to the latency. A long campaign has a smaller load, so that its history fits into memory.
// Refused alternative: an attacker in the process of the campaign, because it would distort the
// measurements.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

type flags struct {
	instance string
	keep     string
	length   time.Duration
	rss      int // in MiB
	ratio    int
	p99      time.Duration
	only     string
	attacker bool
}

func main() {
	var f flags
	flag.StringVar(&f.instance, "instance", "", "the program of the instances (proctest/instance); required")
	flag.StringVar(&f.keep, "keep", "", "leave logs and histories in this directory")
	flag.DurationVar(&f.length, "t", time.Hour, "for how long to attack")
	flag.IntVar(&f.rss, "rss", 512, "MiB of resident memory that an instance may have")
	flag.IntVar(&f.ratio, "ratio", 0, "how often the quiet p99 the attacked one may not reach; 0 means no such limit")
	flag.DurationVar(&f.p99, "p99", time.Second, "what the p99 of a free lock may not reach while attacked")
	flag.StringVar(&f.only, "only", "", "only the attacks whose names contain this")
	flag.BoolVar(&f.attacker, "attacker", false, "be the attacker; for the campaign's own use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := campaign
	if f.attacker {
		run = beAttacker
	}
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}
