package client

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	for code, want := range map[lockfsm.Code]error{
		lockfsm.QueueFull: ErrQueueFull, lockfsm.BadKey: ErrBadKey, lockfsm.TooManyEntries: ErrOverloaded,
		lockfsm.OverSessionBudget: ErrNoRoom, lockfsm.OverGroupBudget: ErrNoRoom,
		lockfsm.InGrace: ErrInGrace, lockfsm.Unsupported: ErrUnsupported, 200: ErrRefused, 0: ErrRefused,
	} {
		b := newBench(t)
		b.attach()
		r := b.acquire("x", true)
		b.want("1: acquire 1 x try")
		b.reply(nodeidtest.ID(1), b.state(1, code, 0))
		b.turn()
		if len(b.outcomes) != 1 || b.outcomes[0].Request != r || !errors.Is(b.outcomes[0].Err, want) {
			t.Errorf("%v: outcomes %+v, want %v", code, b.outcomes, want)
		}
		b.empty()
	}
}

func TestHeldNamesTheHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	b.acquire("x", true)
	b.want("1: acquire 1 x try")
	b.reply(nodeidtest.ID(1), session.Reply{
		Kind: session.ReplyHeld, Session: 100, Epoch: 1, Number: 1, Record: []byte("other"), Holder: 7, Token: 8,
		Since: 9, Waiters: 10,
	})
	b.turn()
	var held *HeldError
	if len(b.outcomes) != 1 || !errors.As(b.outcomes[0].Err, &held) || !errors.Is(held, ErrHeld) {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
	if held.Key != "x" || string(held.Record) != "other" || held.Session != 7 || held.Token != 8 ||
		held.SinceUnixMS != 9 || held.Waiters != 10 {
		t.Errorf("%+v", held)
	}
	b.empty()
}

// TestTryWithoutLeader checks that a try request fails two seconds after the leader was lost.
func TestTryWithoutLeader(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	sent, waits := b.acquire("x", true), b.acquire("y", false)
	b.want("1: acquire 1 x try, acquire 2 y")
	b.core.Down(b.now, nodeidtest.ID(1))
	b.turn()
	b.reply(nodeidtest.ID(2), redirect(3, nodeidtest.ID(0)))
	unsent := b.acquire("z", true)
	b.core.finder.targets = nil // no voter can be asked
	b.turn()
	b.advance(2*time.Second - 1)
	b.turn()
	b.quiet()
	if b.core.Next().Sub(b.now) != 1 {
		t.Errorf("next turn in %v", b.core.Next().Sub(b.now))
	}
	b.advance(1)
	b.turn()
	if len(b.outcomes) != 2 || b.outcomes[0] != (Outcome{Kind: OutcomeFailed, Request: sent, Err: ErrNoLeader}) ||
		b.outcomes[1] != (Outcome{Kind: OutcomeFailed, Request: unsent, Err: ErrNoLeader}) {
		t.Fatalf("outcomes %+v", b.outcomes)
	}
	late := b.acquire("w", true)
	b.turn()
	b.outcome(late, OutcomeFailed, ErrNoLeader)
	b.core.finder.targets = []nodeid.Endpoint{{ID: nodeidtest.ID(2), Addr: "b"}, {ID: nodeidtest.ID(1), Addr: "a"}}
	b.reply(nodeidtest.ID(2), redirect(4, nodeidtest.ID(2)))
	b.want("2: attach 3 live 2-2 next 3, renew 3")
	b.core.Cancel(b.now, waits)
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, key := range []string{"", "a\x00b", "\x7f", "a\nb", "\xff\xfe", strings.Repeat("k", session.LongestKey+1)} {
		r := b.acquire(key, false)
		b.turn()
		b.outcome(r, OutcomeFailed, ErrBadKey)
	}
	b.empty()
}

// TestOverload checks that refused requests get no number, and that the error names the limit.
func TestOverload(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errTooMany, codeError(lockfsm.TooManyEntries)} {
		if !errors.Is(err, ErrOverloaded) || !regexp.MustCompile(`at most 65536|1048576 locks`).MatchString(err.Error()) {
			t.Errorf("%v names no limit", err)
		}
	}
	b := newBench(t)
	var all []*Request
	for range maxUnfinished {
		all = append(all, b.acquire("k", false))
	}
	b.turn()
	b.quiet()
	over := b.acquire("k", false)
	b.turn()
	b.outcome(over, OutcomeFailed, errTooMany)
	b.core.Cancel(b.now, all[7])
	b.acquire("k", false)
	b.turn()
	b.quiet()

	b = newBench(t)
	big := strings.Repeat("k", session.LongestKey)
	for range maxKeyBytes / session.LongestKey {
		b.acquire(big, false)
	}
	b.turn()
	b.quiet()
	over = b.acquire("k", false)
	b.turn()
	b.outcome(over, OutcomeFailed, errTooMany)
}

func TestWindow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	held := b.hold("a")
	for i := range 30_000 {
		b.acquire(fmt.Sprintf("key number %d with a name of some length", i), false)
	}
	sent, frames := 0, 0
	for {
		b.turn()
		if len(b.commands) == 0 {
			t.Fatal("a requested turn sends nothing")
		}
		sent += len(b.commands)
		frames++
		if !b.more {
			break
		}
	}
	if b.core.counts.open < windowBytes || b.core.counts.open > windowBytes+100 || frames < 4 || sent >= 30_000 {
		t.Fatalf("%d bytes open, %d requests in %d frames", b.core.counts.open, sent, frames)
	}
	b.core.Release(b.now, held)
	b.want("1: release 1")
	b.reply(nodeidtest.ID(1), b.state(2, lockfsm.Waiting, 0), b.state(3, lockfsm.Waiting, 0))
	b.turn()
	if len(b.commands) != 1 && len(b.commands) != 2 {
		t.Fatalf("%d requests follow two answers", len(b.commands))
	}
}
