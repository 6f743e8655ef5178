package session

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"

	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
)

// TestBudgetTravels: a reply that names a budget carries it, and any other reply has no byte for it.
func TestBudgetTravels(t *testing.T) {
	t.Parallel()
	for _, kind := range []replyKind{replyState, replyFreed} {
		with := reply{kind: kind, session: 5, epoch: 6, number: 7, code: lockfsm.OverGroupBudget, budget: 1 << 50}
		got, rest, err := nextReply(with.append(nil))
		if err != nil || len(rest) > 0 || got.budget != with.budget || got.code != with.code {
			t.Errorf("kind %d: got %+v, %d bytes left, %v", kind, got, len(rest), err)
		}
		without := reply{kind: kind, session: 5, epoch: 6, number: 7, code: lockfsm.Granted}
		none := without
		none.budget = 1 << 50
		if string(without.append(nil)) != string(none.append(nil)) {
			t.Errorf("kind %d: a granted request carries a budget", kind)
		}
	}
}

// TestErrNoRoomNamesTheBudget: the text says which budget, how large it is, and which field of Config raises it.
func TestErrNoRoomNamesTheBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code  lockfsm.Code
		wants []string
	}{
		{lockfsm.OverSessionBudget, []string{"the session's budget of 64 MiB is", "Config.MaxSessionBytes"}},
		{lockfsm.OverGroupBudget, []string{"the group's budget of 64 MiB for", "Config.MaxGroupBytes"}},
	} {
		b := newClientBench(t)
		b.attach()
		r := b.acquire("x", true)
		b.want("1: acquire 1 x try")
		b.reply(nodeidtest.ID(1), reply{kind: replyState, session: 100, epoch: 1, number: 1, code: c.code, budget: 64 << 20})
		b.turn()
		if len(b.outcomes) != 1 || b.outcomes[0].Request != r || !errors.Is(b.outcomes[0].Err, ErrNoRoom) {
			t.Fatalf("%v: outcomes %+v, want ErrNoRoom", c.code, b.outcomes)
		}
		for _, want := range c.wants {
			if text := strings.ReplaceAll(b.outcomes[0].Err.Error(), " for its locks, waiters and values", ""); !strings.Contains(text, want) {
				t.Errorf("%v: %q does not say %q", c.code, text, want)
			}
		}
		b.empty()
	}
}

// TestDetachThatHasNoRoom: the hold has ended, and the error says which budget had no room for it to stay.
func TestDetachThatHasNoRoom(t *testing.T) {
	t.Parallel()
	b := newClientBench(t)
	b.attach()
	r := &Request{Key: "k", Terms: &Terms{Delay: time.Minute}}
	b.core.Acquire(b.now, r)
	b.turn()
	b.reply(nodeidtest.ID(1), b.state(1, lockfsm.Granted, 1001))
	b.turn()
	b.core.Detach(b.now, r, "")
	b.want("1: detach 1")
	b.reply(nodeidtest.ID(1), reply{kind: replyFreed, session: 100, epoch: 1, number: 1, code: lockfsm.OverGroupBudget, budget: 1 << 28})
	b.turn()
	var budget *BudgetError
	if len(b.outcomes) != 1 || !errors.Is(b.outcomes[0].Err, ErrNoRoom) || !errors.As(b.outcomes[0].Err, &budget) || budget.Bytes != 1<<28 {
		t.Errorf("outcomes %+v, want a hold that has ended for want of room", b.outcomes)
	}
	b.empty()
}

// TestFormatBytes: a number of bytes is written in the largest unit that is exact.
func TestFormatBytes(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[uint64]string{0: "0 bytes", 1000: "1000 bytes", 1024: "1 KiB", 64 << 20: "64 MiB", 3 << 29: "1536 MiB", 1 << 50: "1024 TiB"} {
		if got := FormatBytes(bytes); got != want {
			t.Errorf("%d bytes are written %q, want %q", bytes, got, want)
		}
	}
}
