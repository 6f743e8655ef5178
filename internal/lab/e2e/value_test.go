package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
)

func TestSetValue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		ctx, lead := t.Context(), f.leader()
		other := f.nodes[(lead+2)%3]
		labels := map[string]string{"shard": "7"}
		l := f.acquire((lead+1)%3, mortise.Request{Key: "a", Value: "begun", Labels: labels,
			Also: []mortise.Part{{Key: "b"}}})
		f.crash(lead)
		for i := range 5 {
			if err := l.SetValue(ctx, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		info, err := other.Peek(ctx, "b")
		if err != nil || len(info.Queue) != 1 || info.Queue[0].Value != "4" || info.Queue[0].Labels["shard"] != "7" ||
			info.Queue[0].Token != l.Token() {
			t.Errorf("Peek: %+v, %v", info, err)
		}
		var held *mortise.HeldError
		if _, err := other.TryLock(ctx, "a"); !errors.As(err, &held) || held.Value != "4" {
			t.Errorf("TryLock: %v, %+v", err, held)
		}
		if err := l.SetValue(ctx, strings.Repeat("x", 1025)); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("a long value: %v", err)
		}
		unlock(t, l)
		if err := l.SetValue(ctx, "late"); !errors.Is(err, mortise.ErrUnlocked) {
			t.Errorf("after Unlock: %v", err)
		}
		l = f.acquire((lead+1)%3, stickily{key: "a"})
		if err := l.SetValue(ctx, "x"); !errors.Is(err, mortise.ErrBadRequest) || !strings.Contains(err.Error(), "sticky") {
			t.Errorf("with Sticky: %v", err)
		}
		unlock(t, l)
	})
}

// TestALeaderProclaims checks that observers get each new value of one leadership, in order.
func TestALeaderProclaims(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		ctx, stop := context.WithCancel(t.Context())
		seen := make(chan string, 10)
		go func() {
			for leader := range election.New(f.nodes[2], "e", election.Options{}).Observe(ctx) {
				seen <- fmt.Sprintf("%s %d", leader.Value, leader.Token)
			}
		}()
		if first := <-seen; first != " 0" {
			t.Errorf("before: %q", first)
		}
		l, err := election.New(f.nodes[0], "e", election.Options{}).Campaign(ctx, "one:80")
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range []string{"one:80", "one:81", "one:82"} {
			if err := l.Proclaim(ctx, value); err != nil { // the first one changes nothing
				t.Fatal(err)
			}
			if got, want := <-seen, fmt.Sprintf("%s %d", value, l.Token()); got != want {
				t.Errorf("seen: %q, want %q", got, want)
			}
		}
		synctest.Wait()
		if len(seen) > 0 {
			t.Errorf("seen too: %q", <-seen)
		}
		if err := l.Resign(ctx); err != nil {
			t.Error(err)
		}
		stop()
	})
}

// TestAValueThatBeginsWithAZero checks that such a value, which is not stored as itself, is shown
// as it was given, or is refused by its length.
func TestAValueThatBeginsWithAZero(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		_, err := f.nodes[0].Acquire(brief(t), mortise.Request{Key: "k", Value: "\x00" + strings.Repeat("v", 1000)})
		wantIs(t, err, mortise.ErrBadRequest)
		value := "\x00" + strings.Repeat("v", 700)
		l := f.acquire(0, mortise.Request{Key: "k", Value: value})
		if got := f.peek(0, "k").Queue[0].Value; got != value {
			t.Errorf("the value is shown as %q", got)
		}
		unlock(t, l)
		f.nothingLeft()
	})
}
