//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/attackers"
)

// limits are what judge does not accept.
type limits struct {
	rss   int           // MiB of resident memory of a process
	p99   time.Duration // of a free lock under attack; reaching it is a fault
	ratio int           // of the p99 under attack and before; 0 means no limit
	rate  float64       // least share of the locks a second before the attacks
	terms int           // elections under attack beyond those of the quiet phase
	lost  int           // locks that were lost
	links int           // links of fresh identities of one guest that were open at once
}

// figures are the measurements of a campaign.
type figures struct {
	free            phase // before the quiet phase, see cores.go; not judged
	quiet, attacked phase
	lost            int                        // locks that were lost in any phase
	resident        map[string]int             // the most MiB of each process
	newcomers       newcomers                  // guests that came during the attacks
	kinds           map[string]attackers.Tally // by the name of the kind; each kind that was to be tried
}

// phase is what was measured before the attacks or during them.
type phase struct {
	length    time.Duration
	elections int
	free      spread             // time to be granted a free lock
	rates     map[string]float64 // locks a second, by the name of the client

	granted, failed, lost int // of callers on the instances; the judge uses figures.lost
}

type spread struct {
	count         int
	p50, p99, max time.Duration
}

func (s spread) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("%d calls, p50 %v, p99 %v, max %v", s.count, round(s.p50), round(s.p99), round(s.max))
}

type newcomers struct {
	served, failed int
	why            string // the last error
}

// judge returns a fault for each measurement that exceeds a limit. A measurement that is missing is
// a fault, too: otherwise a client that never ran would pass.
func judge(f figures, l limits) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, kind := range sortedNames(f.kinds) {
		t := f.kinds[kind]
		if t.Tried == 0 {
			fault("the attack %q was never tried", kind)
		}
		if t.Believed > 0 {
			fault("the attack %q was believed %d times", kind, t.Believed)
		}
		if t.Open > int64(l.links) {
			fault("the attack %q had %d links open at once, and the limit is %d", kind, t.Open, l.links)
		}
	}
	switch quiet, attacked := f.quiet.free, f.attacked.free; {
	case quiet.count == 0 || attacked.count == 0:
		fault("no free lock was granted")
	case attacked.p99 >= l.p99:
		fault("p99 was %v while attacked, and the limit is %v", attacked.p99, l.p99)
	case l.ratio > 0 && attacked.p99 >= time.Duration(l.ratio)*quiet.p99:
		fault("p99 was %v quiet and %v attacked, and the limit is %d times", quiet.p99, attacked.p99, l.ratio)
	}
	if more := f.attacked.elections - f.quiet.elections; more > l.terms {
		fault("there were %d elections in %v of attacks, and %d in %v of quiet; the limit is %d more",
			f.attacked.elections, f.attacked.length, f.quiet.elections, f.quiet.length, l.terms)
	}
	for _, client := range sortedNames(f.quiet.rates) {
		quiet, attacked := f.quiet.rates[client], f.attacked.rates[client]
		if quiet <= 0 || attacked < l.rate*quiet {
			fault("%s took %.1f locks a second while attacked and %.1f before, and the least share is %.2f",
				client, attacked, quiet, l.rate)
		}
	}
	if len(f.quiet.rates) == 0 {
		fault("no rate of locks was measured")
	}
	if f.lost > l.lost {
		fault("%d locks were lost, and the limit is %d", f.lost, l.lost)
	}
	if n := f.newcomers; n.failed > 0 || n.served == 0 {
		fault("%d of %d new guests were not served in time: %s", n.failed, n.failed+n.served, n.why)
	}
	for _, process := range sortedNames(f.resident) {
		if mib := f.resident[process]; mib > l.rss || mib == 0 {
			fault("%s had %d MiB resident, and the limit is %d", process, mib, l.rss)
		}
	}
	return faults
}

func sortedNames[V any](m map[string]V) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
