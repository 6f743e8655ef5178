//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/attackers"
)

func accepted() (figures, limits) {
	at := func(rate float64, p99 time.Duration) phase {
		return phase{length: time.Minute, elections: 1, free: spread{count: 9, p99: p99},
			rates: map[string]float64{"a guest": rate, "a program of the agent": rate}}
	}
	return figures{
		quiet: at(100, time.Millisecond), attacked: at(50, 10*time.Millisecond),
		resident: map[string]int{"instance a": 512}, newcomers: newcomers{served: 3},
		kinds: map[string]attackers.Tally{"links": {Tried: 9, Refused: 5, Open: 100}},
	}, limits{rss: 512, p99: time.Second, ratio: 11, rate: 0.5, links: 100}
}

func TestJudgeAcceptsFiguresAtTheLimits(t *testing.T) {
	if faults := judge(accepted()); len(faults) > 0 {
		t.Error(faults)
	}
}

// Each change of the accepted figures alone must lead to exactly one fault, which names it.
func TestJudgeRejects(t *testing.T) {
	for want, change := range map[string]func(f *figures){
		"never tried":             func(f *figures) { f.kinds["links"] = attackers.Tally{} },
		"was believed 1 times":    func(f *figures) { f.kinds["links"] = attackers.Tally{Tried: 1, Believed: 1} },
		"had 101 links open":      func(f *figures) { f.kinds["links"] = attackers.Tally{Tried: 1, Open: 101} },
		"no free lock":            func(f *figures) { f.attacked.free = spread{} },
		"and the limit is 1s":     func(f *figures) { f.attacked.free.p99 = time.Second },
		"the limit is 11 times":   func(f *figures) { f.attacked.free.p99 = 11 * time.Millisecond },
		"there were 2 elections":  func(f *figures) { f.attacked.elections = 2 },
		"a guest took 49.9 locks": func(f *figures) { f.attacked.rates["a guest"] = 49.9 },
		"a guest took 50.0 locks a second while attacked and 0.0": func(f *figures) { f.quiet.rates["a guest"] = 0 },
		"agent took 0.0 locks":   func(f *figures) { delete(f.attacked.rates, "a program of the agent") },
		"no rate of locks":       func(f *figures) { f.quiet.rates = nil },
		"1 locks were lost":      func(f *figures) { f.lost = 1 },
		"1 of 4 new guests":      func(f *figures) { f.newcomers.failed = 1 },
		"0 of 0 new guests":      func(f *figures) { f.newcomers.served = 0 },
		"a had 513 MiB resident": func(f *figures) { f.resident["instance a"] = 513 },
		"a had 0 MiB resident":   func(f *figures) { f.resident["instance a"] = 0 },
	} {
		f, l := accepted()
		change(&f)
		if faults := judge(f, l); len(faults) != 1 || !strings.Contains(faults[0], want) {
			t.Errorf("want one fault with %q: %q", want, faults)
		}
	}
}
