package main

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// This file implements the alert rules of adapters/mortiseotel in Go, for TestStates.

type reading struct {
	life              *counters
	status            mortise.Status
	granted, jeopardy int
	leaders           int
	losses            map[mortise.Outcome]int
}

type counters struct {
	mu                         sync.Mutex // guards the fields below
	granted, jeopardy, leaders int
	losses                     map[mortise.Outcome]int
}

func (c *counters) hooks() *mortise.Hooks {
	c.losses = map[mortise.Outcome]int{}
	count := func(n *int, is bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if is {
			*n++
		}
	}
	return &mortise.Hooks{
		Acquired: func(_ context.Context, e mortise.LockEvent) any {
			count(&c.granted, e.Outcome == mortise.OutcomeGranted)
			return nil
		},
		Node: func(e mortise.NodeEvent) {
			count(&c.jeopardy, e.State == mortise.LeaseJeopardy)
			count(&c.leaders, e.State == mortise.LeaderNew)
		},
		Lost: func(e mortise.LockEvent) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.losses[e.Outcome]++
		},
	}
}

func (c *counters) reading(s mortise.Status) reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := reading{life: c, status: s, granted: c.granted, jeopardy: c.jeopardy, leaders: c.leaders,
		losses: map[mortise.Outcome]int{}}
	for reason, n := range c.losses {
		r.losses[reason] = n
	}
	return r
}

type scrape struct {
	at  time.Time
	all []reading
}

type history []scrape

const scrapeEvery = 5 * time.Second

// rule is one alert. It fires if expr has been true in all scrapes for a certain time. The field
// last contains this time.
type rule struct {
	name string
	last time.Duration
	expr func(h history) bool
}

func anyOf(h history, is func(reading) bool) bool { return slices.ContainsFunc(h[len(h)-1].all, is) }

func increase(h history, r reading, d time.Duration, of func(reading) int) int {
	now := h[len(h)-1].at
	for _, s := range h {
		if i := slices.IndexFunc(s.all, func(o reading) bool { return o.life == r.life }); i >= 0 &&
			now.Sub(s.at) <= d {
			return of(r) - of(s.all[i])
		}
	}
	return 0
}

func lostBy(is func(reason mortise.Outcome) bool) func(history) bool {
	return func(h history) bool {
		return anyOf(h, func(r reading) bool {
			return increase(h, r, 10*time.Minute, func(r reading) (n int) {
				for reason, count := range r.losses {
					if is(reason) {
						n += count
					}
				}
				return n
			}) > 0
		})
	}
}

func rules() []rule {
	is := func(outcome mortise.Outcome) func(mortise.Outcome) bool {
		return func(reason mortise.Outcome) bool { return reason == outcome }
	}
	return []rule{
		{"MortiseNoLeader", time.Minute,
			func(h history) bool { return !anyOf(h, func(r reading) bool { return r.status.Leader != "" }) }},
		{"MortiseTwoLeaders", 2 * time.Minute, func(h history) bool {
			n := 0
			anyOf(h, func(r reading) bool {
				if r.status.Leading {
					n++
				}
				return false
			})
			return n > 1
		}},
		{"MortiseSurplus", time.Minute, func(h history) bool {
			return anyOf(h, func(r reading) bool { return r.status.Health != nil && r.status.Health.Surplus > 0 })
		}},
		{"MortiseDiverged", 0, func(h history) bool {
			return anyOf(h, func(r reading) bool {
				return r.status.Health != nil && slices.ContainsFunc(r.status.Health.Differs, func(d string) bool {
					return strings.HasPrefix(d, "State: ")
				})
			})
		}},
		{"MortiseRetired", time.Minute,
			func(h history) bool { return anyOf(h, func(r reading) bool { return r.status.Err != nil }) }},
		{"MortiseNotReady", 5 * time.Minute, func(h history) bool {
			return anyOf(h, func(r reading) bool {
				milli := func(d func(reading) time.Duration) int {
					return increase(h, r, 5*time.Minute, func(r reading) int { return int(d(r).Milliseconds()) })
				}
				age := milli(func(r reading) time.Duration { return r.status.Age })
				return age > 0 && float64(milli(func(r reading) time.Duration { return r.status.Available }))/float64(age) < .9
			})
		}},
		{"MortiseLocksLost", 0, lostBy(func(reason mortise.Outcome) bool {
			return !slices.Contains([]mortise.Outcome{mortise.OutcomeOverdue, mortise.OutcomeForced,
				mortise.OutcomeStopped, mortise.OutcomeResumed}, reason)
		})},
		{"MortiseHeldTooLong", 0, lostBy(is(mortise.OutcomeOverdue))},
		{"MortiseForcedUnlocks", 0, lostBy(is(mortise.OutcomeForced))},
		{"MortiseLeaseInJeopardy", 0, func(h history) bool {
			return anyOf(h, func(r reading) bool {
				return increase(h, r, 10*time.Minute, func(r reading) int { return r.jeopardy }) > 0
			})
		}},
		{"MortiseStuck", 5 * time.Minute, func(h history) bool {
			return anyOf(h, func(r reading) bool {
				return r.status.Waiters-r.status.Standby > 0 &&
					increase(h, r, time.Minute, func(r reading) int { return r.granted }) == 0
			})
		}},
		{"MortiseLeaderFlaps", 0, func(h history) bool {
			return anyOf(h, func(r reading) bool {
				return increase(h, r, 15*time.Minute, func(r reading) int { return r.leaders }) > 3
			})
		}},
		{"MortiseVoterMissing", 3 * time.Minute, func(h history) bool {
			return anyOf(h, func(r reading) bool {
				votes := slices.DeleteFunc(slices.Clone(r.status.Voters),
					func(m mortise.Member) bool { return !m.Votes })
				return r.status.Health != nil && (len(r.status.Health.Missing) > 0 ||
					r.status.VotersWanted > len(votes))
			})
		}},
		{"MortiseDiskFault", 0, func(h history) bool {
			return anyOf(h, func(r reading) bool {
				return r.status.Disk != nil &&
					r.status.Disk.State != mortise.DiskLow
			})
		}},
		{"MortiseDiskLow", 5 * time.Minute, func(h history) bool {
			return anyOf(h, func(r reading) bool {
				return r.status.Disk != nil &&
					r.status.Disk.State == mortise.DiskLow
			})
		}},
	}
}

// notPlayed lists the rules that no state of TestStates triggers.
var notPlayed = []string{
	"MortiseLeakedHandles", "MortiseQueueLong", "MortiseRefused", "MortiseDeadlocks", "MortiseLogSyncSlow",
	"MortiseTelemetryDropped", "MortiseHoldGoesOn",
}

func firing(h history) (names []string) {
	for _, r := range rules() {
		var since time.Time
		for i := range h {
			if !r.expr(h[:i+1]) {
				since = time.Time{}
				continue
			}
			if since.IsZero() {
				since = h[i].at
			}
			if h[i].at.Sub(since) >= r.last {
				names = append(names, r.name)
				break
			}
		}
	}
	return names
}

func TestRulesAreThoseOfTheFile(t *testing.T) {
	text, err := os.ReadFile("../../adapters/mortiseotel/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]time.Duration{}
	for _, r := range rules() {
		known[r.name] = r.last
	}
	for _, m := range regexp.MustCompile(`(?s)alert: (\w+)\n\s+expr: .*?\n\s+for: (\w+)`).
		FindAllStringSubmatch(string(text), -1) {
		last, here := known[m[1]]
		if want, err := time.ParseDuration(m[2]); here && (err != nil || last != want) {
			t.Errorf("%s lasts %v in the file and %v here", m[1], m[2], last)
		}
		if here == slices.Contains(notPlayed, m[1]) {
			t.Errorf("%s is in the file: add it to rules or to notPlayed", m[1])
		}
		delete(known, m[1])
	}
	for name := range known {
		t.Errorf("%s is not in the file", name)
	}
}
