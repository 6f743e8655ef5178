//go:build linux

// Attack is a campaign against three instances that run as processes with a secret: one more
// process has that secret and attacks them in all ways at once, while their callers take locks and
// record what they see. ../../../scripts/attack builds and runs it.
//
//	attack -instance PROGRAM [-t 1h] [-keep DIR] [-rss 512] [-p99 1s] [-ratio 0] [-only TEXT]
//
// First the load runs alone, for a tenth of -t and between 5 and 60 seconds. Then the attacks run
// for -t. The campaign fails if
//
//   - the recorded history is not right: a lock granted twice, for example (package
//     internal/history),
//   - an instance has ended, no longer votes, or knows other voters than at the beginning,
//   - the resident memory of an instance was above -rss MiB,
//   - an instance believed in a hello that its speaker cannot have signed,
//   - the p99 of the time to be granted a free lock was -p99 or more, or -ratio times the quiet
//     one. The ratio means something with -only impostors: all attacks at once take the processors
//     too.
//
// It prints how often each attack was tried, and what came of it, the locks that were granted and
// lost, the latency of both phases, and the largest resident memory.
//
// Guarantees: it ends only processes that it has started. Concurrency: one process for the
// campaign, three for the instances, one for the attacker, which is this program once more.
// Failure: exit status 1, with one line for each limit that was passed; -keep leaves logs and
// histories. Limits: Linux (it reads /proc). All processes share one machine, so what the
// attacker's own work takes from the processors is part of the latency under attack, although it
// runs at a lower priority. The load of a long campaign is thinner, so that its history fits into
// memory: a million events or so. Refused alternative: an attacker in the process of the campaign,
// whose memory and whose stalls would be the judge's.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// flags are what the command line says.
type flags struct {
	instance string
	keep     string
	length   time.Duration
	rss      int // MiB
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
