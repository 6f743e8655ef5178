//go:build linux

// Attack is a campaign against three instances and an agent that run as processes with a secret.
// Another process has the same secret and secrets that are derived from it, and attacks them on one
// core. Meanwhile callers on the instances take locks and record the results, and legitimate
// clients lock: a guest, a program of the agent, and guests that come and go.
// ../../../scripts/attack builds and runs it.
//
//	attack -instance PROGRAM -agent PROGRAM [-t 1h] [-quiet 1m] [-only TEXT,TEXT] [-keep DIR] [-own]
//	       [-rate 0.5] [-terms 0] [-lost 0] [-links 4096] [-rss 512] [-p99 1s] [-ratio 0]
//
// First the clients run alone, for -quiet. Then they run beside a neutral process, for -quiet: this
// is the quiet phase, and cores.go gives the reason. Then the attacks run for -t. Those that a
// slow machine has not tried by then run longer, for at most five times -t. The campaign fails if
//
//   - the recorded history breaks a rule of package internal/history, for example if a lock was
//     granted twice,
//   - a process has ended, or an instance no longer votes, or reports other voters than at the
//     beginning,
//   - there were over -terms more elections during the attacks than in the quiet phase, even if
//     that phase is shorter,
//   - a legitimate client took less than -rate of its locks a second of the quiet phase,
//   - over -lost locks were lost,
//   - a guest that came could not begin a session, lock, ask and leave within ten seconds,
//   - the resident memory of a process was above -rss MiB,
//   - an attack was believed: a hello that its sender cannot have signed, a lock that was taken or
//     ended without the right, a made-up secret, or a flood of frames on one connection that was
//     neither ended nor slowed,
//   - an instance had over -links links of fresh identities of one guest at once,
//   - the p99 of the time to be granted a free lock was at least -p99, or at least -ratio times the
//     p99 without attacks. The ratio is meaningful only with -only impostors, because all attacks
//     together use much CPU time.
//
// The campaign prints two tables: how often each attack was tried, refused and believed, and the
// locks a second of each client with and without attacks. It also prints latencies, elections, lost
// locks and the largest resident memory. judge.go contains the limits, without the processes.
//
// The default limits are for a quiet machine with two processors; ./test.sh has generous ones.
//
// Guarantees: the campaign ends only processes that it has started. Concurrency: the campaign with
// the legitimate clients, the three instances, the agent and the attacker are processes. Failure:
// the exit status is 1, and the campaign prints one line for each exceeded limit; -keep keeps logs
// and histories. Limits: the campaign needs Linux, because it reads /proc. All processes share one
// machine, so the attacker's CPU time lowers the rates. The rates of the first phase show by how
// much, together with the attacks. The attacker has an address of its own, as another machine has,
// because instances bound what comes from one address. The histories contain only the locks of
// callers on the instances, because clients that record no calls cannot be judged. A long campaign
// has a smaller load, so that its history fits into memory. Refused alternative: an attacker in the
// process of the campaign, because it would distort the measurements.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/attackers"
)

func main() {
	var f flags
	flag.StringVar(&f.instance, "instance", "", "the program of the instances (proctest/instance); required")
	flag.StringVar(&f.agent, "agent", "", "the program of the agent (cmd/mortise); required")
	flag.StringVar(&f.keep, "keep", "", "leave logs and histories in this directory")
	flag.DurationVar(&f.length, "t", time.Hour, "for how long to attack")
	flag.DurationVar(&f.quiet, "quiet", 0, "for how long to measure before; 0 means a tenth of -t, 10s to 1m")
	flag.IntVar(&f.rss, "rss", 512, "MiB of resident memory that a process may have")
	flag.Float64Var(&f.rate, "rate", 0.5, "least share of the quiet locks a second, for each legitimate client")
	flag.IntVar(&f.terms, "terms", 0, "how many more elections there may be than in the quiet phase")
	flag.IntVar(&f.lost, "lost", 0, "how many locks may be lost")
	flag.IntVar(&f.links, "links", 4096, "how many links of one guest's fresh identities may be open at once")
	flag.IntVar(&f.ratio, "ratio", 0, "how often the quiet p99 the attacked one may not reach; 0 means no such limit")
	flag.DurationVar(&f.p99, "p99", time.Second, "what the p99 of a free lock may not reach while attacked")
	flag.BoolVar(&f.own, "own", false, "give the attackers one processor for themselves, and all others to the rest")
	flag.BoolVar(&f.spin, "spin", false, "be the neutral process; for the campaign's own use")
	flag.StringVar(&f.only, "only", "", "only the attacks whose names contain one of these texts, separated by commas")
	flag.BoolVar(&f.attacker, "attacker", false, "be the attacker; for the campaign's own use")
	flag.Parse()
	if f.quiet <= 0 {
		f.quiet = min(max(f.length/10, 10*time.Second), time.Minute)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := campaign
	if f.spin {
		run = func(ctx context.Context, _ flags) error { return spin(ctx) }
	}
	if f.attacker {
		run = func(ctx context.Context, f flags) error {
			return attackers.Run(ctx, os.Stdin, os.Stdout, f.length, f.only)
		}
	}
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}
