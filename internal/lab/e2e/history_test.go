package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// recordStorm runs callers on n nodes and crashes the leader meanwhile. It returns the recorded
// events of all instances.
func recordStorm(t *testing.T, n int) []history.Event {
	t.Helper()
	files := make([]bytes.Buffer, n+1)
	next := 0
	f := startFleet(t, n, func(c *mortise.Config) {
		c.History = &files[next]
		next++
	})
	var callers sync.WaitGroup
	storm := func(i, caller int) {
		node, rng := f.nodes[i], rand.New(rand.NewPCG(uint64(i), uint64(caller)))
		callers.Go(func() {
			for range 40 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(400))*time.Millisecond)
				l, err := node.Acquire(ctx, mortise.Request{Key: fmt.Sprint("key-", rng.IntN(3)),
					Try: rng.IntN(4) == 0})
				if err == nil {
					time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
					_ = l.Unlock(t.Context())
				}
				cancel()
				time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
			}
		})
	}
	for i := range n {
		for caller := range 6 {
			storm(i, caller)
		}
	}
	time.Sleep(500 * time.Millisecond)
	victim := f.leader()
	f.lock(victim, "of the dead")
	f.crash(victim)
	callers.Wait()
	c := f.config(victim, n)
	c.History = &files[n]
	f.start(victim, c) // returns as a new incarnation
	f.ready()
	unlock(t, f.lock(victim, "of the dead"))
	f.nothingLeft()
	for i := range f.nodes {
		f.close(i)
	}
	synctest.Wait()
	keep(t, files)
	var events []history.Event
	for i := range files {
		var err error
		if events, err = history.Read(events, &files[i]); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

// keep writes the histories to the directory of go test -artifacts. judge/testdata contains one
// such history.
func keep(t *testing.T, files []bytes.Buffer) {
	t.Helper()
	for i := range files {
		if err := os.WriteFile(filepath.Join(t.ArtifactDir(), fmt.Sprintf("history-%d.jsonl", i)), files[i].Bytes(),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecordedHistoryIsRight(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		events := recordStorm(t, 3)
		whole := history.Options{Settled: true}
		if err := history.Judge(events, whole); err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for _, e := range events {
			seen[fmt.Sprint(e.Kind, " ", e.Outcome, " ", e.How)]++
		}
		t.Logf("%d events: %v", len(events), seen)
		for _, what := range []string{"return granted unknown", "return held unknown", "return failed unknown",
			"lost unknown unknown", "end unknown expire", "end unknown release"} {
			if seen[what] == 0 {
				t.Errorf("the storm has no %q: it shows too little", what)
			}
		}
		tamper(t, events, whole)
	})
}

// tamper changes one event at a time, and checks that the judge refuses each changed history.
func tamper(t *testing.T, events []history.Event, o history.Options) {
	for _, c := range []struct {
		name string
		// change changes e and reports whether e was the event to change.
		change func(e *history.Event) bool
	}{
		{"a token", func(e *history.Event) bool {
			e.Token++
			return e.Kind == history.Return && e.Outcome == history.Granted
		}},
		{"a voter's token", func(e *history.Event) bool { e.Token++; return e.Kind == history.Grant }},
		{"a voter's place", func(e *history.Event) bool { e.Place++; return e.Kind == history.Grant }},
		{"an end", func(e *history.Event) bool { e.Token++; return e.Kind == history.End }},
		{"the time of an answer", func(e *history.Event) bool {
			e.At -= int64(time.Second)
			return e.Kind == history.Return && e.Outcome == history.Granted
		}},
		{"a hole", func(e *history.Event) bool {
			*e = history.Event{Kind: history.Dropped, Stream: e.Stream, Count: 1}
			return true
		}},
	} {
		changed := append([]history.Event(nil), events...)
		for i := len(changed) / 2; i < len(changed); i++ {
			if e := changed[i]; c.change(&e) {
				changed[i] = e
				break
			}
		}
		err := history.Judge(changed, o)
		if err == nil {
			t.Errorf("%s was changed, and the history passes", c.name)
		}
	}
}

func TestHistoryThatCannotBeWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		stuck, unstick := io.Pipe()
		defer stuck.Close()
		f := startFleet(t, 1, func(c *mortise.Config) { c.History = unstick })
		for range 100 {
			unlock(t, f.lock(0, "a"))
		}
		began := time.Now()
		err := f.nodes[0].Close()
		f.nodes[0] = nil
		if err == nil || time.Since(began) > 30*time.Second {
			t.Errorf("Close with a history that hangs took %v and returned %v", time.Since(began), err)
		}
		stuck.Close()
		synctest.Wait()
	})
	bubble(t, func(t *testing.T) {
		full := errors.New("disk full")
		f := startFleet(t, 1, func(c *mortise.Config) { c.History = failing{full} })
		unlock(t, f.lock(0, "a"))
		err := f.nodes[0].Close()
		f.nodes[0] = nil
		wantIs(t, err, full)
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestUnlockAfterADetachReleasesNothing checks that a history does not call the Unlock of a lock
// that was detached a release: the hold ends only with its LockDelay. The fleet judges the history.
func TestUnlockAfterADetachReleasesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		l, err := f.nodes[0].Acquire(t.Context(), mortise.Request{Key: "k", LockDelay: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		unlock(t, l)
		time.Sleep(100 * time.Millisecond)
		unlock(t, f.lock(0, "between"))
		unlock(t, f.lock(0, "k"))
	})
}
