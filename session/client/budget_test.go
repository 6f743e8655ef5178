package client

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

func TestErrNoRoomNamesTheBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code  lockfsm.Code
		wants []string
	}{
		{lockfsm.OverSessionBudget, []string{"the session's budget of 64 MiB is", "Config.MaxSessionBytes"}},
		{lockfsm.OverGroupBudget, []string{"the group's budget of 64 MiB for", "Config.MaxGroupBytes"}},
	} {
		b := newBench(t)
		b.attach()
		r := b.acquire("x", true)
		b.want("1: acquire 1 x try")
		b.reply(nodeidtest.ID(1), session.Reply{Kind: session.ReplyState, Session: 100, Epoch: 1, Number: 1,
			Code: c.code, Budget: 64 << 20})
		b.turn()
		if len(b.outcomes) != 1 || b.outcomes[0].Request != r || !errors.Is(b.outcomes[0].Err, ErrNoRoom) {
			t.Fatalf("%v: outcomes %+v, want ErrNoRoom", c.code, b.outcomes)
		}
		for _, want := range c.wants {
			if text := strings.ReplaceAll(b.outcomes[0].Err.Error(), " for its locks, waiters and values",
				""); !strings.Contains(text, want) {
				t.Errorf("%v: %q does not say %q", c.code, text, want)
			}
		}
		b.empty()
	}
}

func TestDetachThatHasNoRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	r := &Request{Key: "k", Terms: &Terms{Delay: time.Minute}}
	b.core.Acquire(b.now, r)
	b.turn()
	b.reply(nodeidtest.ID(1), b.state(1, lockfsm.Granted, 1001))
	b.turn()
	b.core.Detach(b.now, r, "")
	b.want("1: detach 1")
	b.reply(nodeidtest.ID(1), session.Reply{Kind: session.ReplyFreed, Session: 100, Epoch: 1, Number: 1,
		Code: lockfsm.OverGroupBudget, Budget: 1 << 28})
	b.turn()
	var budget *BudgetError
	if len(b.outcomes) != 1 || !errors.Is(b.outcomes[0].Err, ErrNoRoom) || !errors.As(b.outcomes[0].Err, &budget) ||
		budget.Bytes != 1<<28 {
		t.Errorf("outcomes %+v, want a hold that has ended for want of room", b.outcomes)
	}
	b.empty()
}
