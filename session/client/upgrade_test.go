package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

func upgradableTerms() Terms { return Terms{Modes: []lockfsm.Mode{lockfsm.ModeU}, Grace: benchGrace} }

// upgrade asks for the upgrade of a hold.
func (b *bench) upgrade(hold *Request) *Request {
	r := &Request{Key: hold.Key, Terms: &Terms{Under: hold, Upgrades: true, Grace: hold.Terms.Grace,
		Longest: hold.Terms.Longest}}
	b.core.Acquire(b.now, r)
	return r
}

// upgraded returns a hold with an upgrade, which is held.
func (b *bench) upgraded(terms Terms) (hold, up *Request) {
	b.t.Helper()
	hold = b.holdWith(terms)
	up = b.upgrade(hold)
	b.want("1: acquire 2 k")
	b.reply(b.to.ID, b.state(2, lockfsm.Granted, 2002))
	b.turn()
	b.outcome(up, OutcomeGranted, nil)
	return hold, up
}

// both checks that a turn has ended an upgrade before its hold.
func (b *bench) both(up, hold *Request, kind OutcomeKind, err error) {
	b.t.Helper()
	if o := b.outcomes; len(o) != 2 || o[0].Request != up || o[0].Kind != kind || !errors.Is(o[0].Err, err) ||
		o[1].Request != hold || o[1].Kind != OutcomeLost || !errors.Is(o[1].Err, err) {
		b.t.Fatalf("the outcomes are %+v, want first the end of the upgrade with %v, then that of its hold", o, err)
	}
}

func TestUpgradeIsARequestUnderItsHold(t *testing.T) {
	b := newBench(t)
	b.attach()
	hold := b.holdWith(upgradableTerms())
	up := b.upgrade(hold)
	b.want("1: acquire 2 k")
	if c := b.commands[0]; !c.Upgrades || c.Owner != 1 || c.Modes != nil {
		t.Fatalf("it sends %+v", c)
	}
	second := b.upgrade(hold)
	b.turn()
	b.outcome(second, OutcomeFailed, ErrUpgraded)
	b.reply(b.to.ID, b.state(2, lockfsm.Granted, 2002))
	b.turn()
	b.outcome(up, OutcomeGranted, nil)
	b.core.Release(b.now, up)
	third := b.upgrade(hold) // the release of the former is sent before it
	b.want("1: release 2, acquire 3 k")
	b.core.Cancel(b.now, third)
	b.want("1: cancel 3")
	b.reply(b.to.ID, b.state(3, lockfsm.Granted, 3003), b.freed(2), b.freed(3)) // the grant has crossed the cancel
	b.turn()
	b.outcome(up, OutcomeReleased, nil)
	b.core.Release(b.now, hold)
	b.turn()
	fourth := b.upgrade(hold)
	b.turn()
	b.outcome(fourth, OutcomeFailed, ErrNotHeld)
	b.reply(b.to.ID, b.freed(1))
	b.turn()
	b.empty()
}

// TestAnUpgradeEndsWithItsHold ends a hold in every way, while its upgrade waits and while it is
// held.
func TestAnUpgradeEndsWithItsHold(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(*bench, *Request)
		want error
	}{
		"the lease ends": {func(b *bench, _ *Request) { b.now = b.deadline }, ErrLost},
		"it is ended by force": {func(b *bench, _ *Request) {
			b.reply(b.to.ID, session.Reply{Kind: session.ReplyEvicted, Session: b.core.session, Epoch: b.core.epoch,
				Number: 1, Record: []byte("ops"), Value: []byte("hangs")})
		}, ErrLost},
		"it is overdue": {func(b *bench, _ *Request) { b.advance(2 * time.Second) }, ErrLost},
		"the group does not have it": {func(b *bench, _ *Request) {
			state := b.state(2, lockfsm.Waiting, 0)
			if b.core.counts.held == 2 {
				state = b.state(2, lockfsm.Granted, 2002)
			}
			b.core.Down(b.now, b.to.ID)
			b.turn()
			state.Epoch = b.core.epoch
			b.reply(b.to.ID, state, b.attached(lockfsm.Done), b.renewed())
		}, ErrLost},
		"the session ends": {func(b *bench, _ *Request) { b.reply(b.to.ID, b.ended(session.EndNoSession)) }, ErrLost},
	} {
		for _, held := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				b := newBench(t)
				b.attach()
				terms := Terms{Modes: []lockfsm.Mode{lockfsm.ModeU}, Longest: 2 * time.Second}
				if name != "it is overdue" {
					terms.Longest = 0
				}
				hold := b.holdWith(terms)
				b.advance(time.Second / 2)
				up := b.upgrade(hold)
				b.turn()
				kind := OutcomeFailed
				if held {
					b.reply(b.to.ID, b.state(2, lockfsm.Granted, 2002))
					b.turn()
					kind = OutcomeLost
				}
				if until := up.limit().time(); held && until != hold.limit().time() {
					t.Fatalf("the upgrade ends at %v, and its hold at %v", until, hold.limit().time())
				}
				c.ends(b, hold)
				b.turn()
				if name == "it is overdue" && held {
					b.outcomes[0].Err, b.outcomes[1].Err = ErrLost, ErrLost
					if b.outcomes[0].Request == hold { // both are overdue
						t.Fatalf("the outcomes are %+v", b.outcomes)
					}
				}
				b.both(up, hold, kind, c.want)
			})
		}
	}
}

func TestTheReleaseOfAHoldEndsItsUpgrade(t *testing.T) {
	b := newBench(t)
	b.attach()
	hold, up := b.upgraded(upgradableTerms())
	b.core.Release(b.now, hold)
	b.want("1: cancel 2, release 1")
	b.outcome(up, OutcomeLost, HoldReleasedError{})
	if b.core.Release(b.now, up) {
		t.Error("an upgrade was released that had ended")
	}
	b.reply(b.to.ID, b.freed(2), b.freed(1))
	b.turn()
	b.outcome(hold, OutcomeReleased, nil)
	b.empty()
}

// TestBothAreInDoubtAndGoodAgain checks that an upgrade shares the doubt of its hold, and that no
// upgrade begins in doubt.
func TestBothAreInDoubtAndGoodAgain(t *testing.T) {
	b := newBench(t)
	b.attach()
	hold, up := b.upgraded(upgradableTerms())
	b.core.Down(b.now, nodeidtest.ID(1))
	b.want("2: attach 2 live 1-2 next 3, renew 2")
	b.now = b.deadline
	b.core.begin(b.now)
	b.turn()
	if o := b.outcomes; len(o) != 2 || o[0].Kind != OutcomeInDoubt || o[1].Kind != OutcomeInDoubt {
		t.Fatalf("the outcomes are %+v", o)
	}
	second := b.upgrade(hold)
	b.advance(time.Second)
	b.turn()
	if len(b.outcomes) != 1 || b.outcomes[0].Request != second || b.outcomes[0].Err != ErrInJeopardy {
		t.Fatalf("the outcomes are %+v", b.outcomes)
	}
	b.reply(b.to.ID, b.state(1, lockfsm.Granted, hold.token()), b.state(2, lockfsm.Granted, up.token()),
		b.attached(lockfsm.Done), b.renewed())
	b.turn()
	if o := b.outcomes; len(o) != 2 || o[0].Kind != OutcomeGood || o[1].Kind != OutcomeGood {
		t.Fatalf("the outcomes are %+v", o)
	}
	b.core.Release(b.now, up)
	b.turn()
	b.reply(b.to.ID, b.freed(2))
	b.turn()
	b.outcome(up, OutcomeReleased, nil)
}

// upgradable returns a hold of key x that can be upgraded, and a reader of x of another client.
func (w *world) upgradable() (hold, reader *Hold) {
	w.t.Helper()
	hold, err := w.take(nodeidtest.ID(100), Terms{Modes: []lockfsm.Mode{lockfsm.ModeU}})
	if err != nil {
		w.t.Fatal(err)
	}
	if reader, err = w.take(nodeidtest.ID(101), Terms{Permits: 1}); err != nil {
		w.t.Fatal(err)
	}
	return hold, reader
}

func (h *Hold) upgradeInto(ctx context.Context, up *Hold) error {
	r := h.UpgradeRequest()
	return h.Upgrade(ctx, up, &r)
}

func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		hold, reader := w.upgradable()
		up, got := &Hold{}, make(chan error, 1)
		go func() { got <- hold.upgradeInto(t.Context(), up) }()
		synctest.Wait()
		late := make(chan *Hold)
		go func() {
			h, _ := w.take(nodeidtest.ID(101), Terms{Permits: 1})
			late <- h
		}()
		synctest.Wait()
		if len(got) != 0 || w.counts().Waiters != 2 {
			t.Fatalf("beside a reader: %+v", w.counts())
		}
		if err := hold.upgradeInto(t.Context(), &Hold{}); !errors.Is(err, ErrUpgraded) {
			t.Errorf("a second upgrade: %v", err)
		}
		_ = reader.Release(t.Context())
		if err := <-got; err != nil || !up.Upgraded() || hold.Upgraded() || !hold.Upgradable() || up.Upgradable() {
			t.Fatalf("upgraded: %v", err)
		}
		if up.Token() <= reader.Token() || hold.Err() != nil || up.Err() != nil {
			t.Errorf("token %d after the reader's %d: %v, %v", up.Token(), reader.Token(), hold.Err(), up.Err())
		}
		if err := up.Release(t.Context()); err != nil { // the step back
			t.Error(err)
		}
		_ = (<-late).Release(t.Context())
		if hold.Err() != nil {
			t.Errorf("after the step back: %v", hold.Err())
		}
		up = &Hold{}
		if err := hold.upgradeInto(t.Context(), up); err != nil {
			t.Error(err)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := up.Err(); !errors.Is(err, HoldReleasedError{}) {
			t.Errorf("the hold was released first: %v", err)
		}
		_ = up.Release(t.Context())
		w.empty()
	})
}

// TestUpgradeThatFails checks that after each error the hold is still upgradable, and nothing more.
func TestUpgradeThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(w *world, hold, reader *Hold) error
		want  error
	}{
		"the context ends": {func(w *world, hold, _ *Hold) error {
			ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
			defer cancel()
			return hold.upgradeInto(ctx, &Hold{})
		}, context.DeadlineExceeded},
		"a grant crosses the cancel": {func(w *world, hold, reader *Hold) error {
			ctx, cancel := context.WithCancel(w.t.Context())
			got := make(chan error)
			go func() { got <- hold.upgradeInto(ctx, &Hold{}) }()
			synctest.Wait()
			w.onReply = cancel
			_ = reader.Release(w.t.Context())
			return <-got
		}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, nodeidtest.ID(1))
				defer w.close()
				w.elect(nodeidtest.ID(1))
				hold, reader := w.upgradable()
				if err := c.fails(w, hold, reader); !errors.Is(err, c.want) {
					t.Errorf("Upgrade: %v", err)
				}
				_ = reader.Release(t.Context())
				late, err := w.take(nodeidtest.ID(101), Terms{Permits: 1}) // beside the hold
				if err != nil || hold.Err() != nil {
					t.Fatalf("a later reader: %v; the hold: %v", err, hold.Err())
				}
				_ = late.Release(t.Context())
				_ = hold.Release(t.Context())
				w.empty()
			})
		})
	}
}
