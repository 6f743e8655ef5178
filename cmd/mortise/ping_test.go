//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestPing(t *testing.T) {
	t.Parallel()
	f := startFleet(t, false, "a")
	w := f.watch("")
	w.next(t, "reset")
	f.mortise("ping", "-n", "3").wants(t, exitOK, "a leads; 3 times lock and unlock: min ")
	for i := range 4 { // one more than -n, because the first ping is not counted
		held := w.next(t, "held")
		if freed := w.next(t, "freed"); !strings.HasPrefix(held.Key, pingPrefix) || freed.Token != held.Token {
			t.Errorf("lock %d: %+v was granted and %+v given back", i, held, freed)
		}
	}

	var p pinged
	s := f.mortise("ping", "-n", "5", "-o", "json", "other/").wants(t, exitOK)
	if err := json.Unmarshal([]byte(s.out), &p); err != nil {
		t.Fatal(err)
	}
	if p.Leader != "a" || p.Locks != 5 || p.Min <= 0 || p.Median < p.Min || p.P99 < p.Median ||
		p.P99 > s.took.Seconds() {
		t.Errorf("ping says %+v after %v", p, s.took)
	}
	if e := w.next(t, "held"); !strings.HasPrefix(e.Key, "other/") {
		t.Errorf("ping has locked %q", e.Key)
	}

	f.mortise("ping", "-n", "0").wants(t, exitUsage)
	f.mortise("ping", "a", "b").wants(t, exitUsage)
	f.agents[0].kill()
	f.mortise("ping", "-timeout", "300ms").wants(t, exitNotReady, "mortise doctor")
}

func TestMeasured(t *testing.T) {
	var took []time.Duration
	for i := range 200 {
		took = append(took, time.Duration(200-i)*time.Millisecond)
	}
	if p := measured(took, "a"); p != (pinged{Leader: "a", Locks: 200, Min: 0.001, Median: 0.1, P99: 0.198}) {
		t.Errorf("%+v", p)
	}
	if p := measured(took[:1], "a"); p.Median != p.Min || p.P99 != p.Min {
		t.Errorf("one: %+v", p)
	}
}
