package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// TestAHoldEndsWhenItsHolderStopsBeating beats at random times, and then stops. The hold must end
// between 1 and 1.25 times its Idle after the last beat.
func TestAHoldEndsWhenItsHolderStopsBeating(t *testing.T) {
	t.Parallel()
	early, late := 2*time.Hour, time.Duration(0)
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 6))
			w := newWorld(t, 2, nodeidtest.ID(1))
			defer w.close()
			w.elect(nodeidtest.ID(1))
			idle := time.Duration(1 + r.Int64N(int64(20*time.Second)))
			h, err := w.take(nodeidtest.ID(100), Terms{Idle: idle})
			if err != nil {
				t.Fatal(err)
			}
			last := time.Now()
			for range r.IntN(30) {
				time.Sleep(time.Duration(r.Int64N(int64(idle))))
				if err := h.Err(); err != nil {
					t.Fatalf("seed %d: %v after the last beat, with an idle of %v: %v", seed, time.Since(last), idle, err)
				}
				h.Beat()
				last = time.Now()
			}
			<-h.Done()
			took := time.Since(last)
			if err := h.Err(); !errors.Is(err, IdleError{}) || !errors.Is(err, ErrLost) {
				t.Errorf("seed %d: %v", seed, err)
			}
			if took < idle || took > idle+idle/4+5 {
				t.Errorf("seed %d: with an idle of %v it ended %v after the last beat", seed, idle, took)
			}
			early, late = min(early, took-idle), max(late, took-idle)
			h.Beat()
			time.Sleep(idle)
			if err := h.Err(); !errors.Is(err, IdleError{}) {
				t.Errorf("seed %d: after a beat of the ended hold: %v", seed, err)
			}
			w.lock(nodeidtest.ID(101), "x").Release(t.Context())
			w.empty()
		})
	}
	t.Logf("the ends were %v to %v after the idle time", early, late)
}

// TestABeatAfterTheEndChangesNothing lets Err find that a hold is idle while the client's goroutine
// is in a turn. A beat before that turn ends must not keep the hold, and the delay counts.
func TestABeatAfterTheEndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nodeidtest.ID(1))
		defer w.close()
		leaping := w.leap()
		w.elect(nodeidtest.ID(1))
		h, err := w.take(nodeidtest.ID(100), Terms{Idle: worldTTL / 2, Delay: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		goOn := w.holdUp()
		leaping.leap.Advance(worldTTL / 2)
		if err := h.Err(); !errors.Is(err, IdleError{}) {
			t.Fatalf("past its time: %v", err)
		}
		h.Beat()
		if err := h.Err(); !errors.Is(err, IdleError{}) {
			t.Fatalf("after a beat: %v", err)
		}
		goOn()
		began := time.Now()
		w.lock(nodeidtest.ID(101), "x").Release(t.Context())
		if waited := time.Since(began); waited < time.Minute {
			t.Errorf("the next waited only for %v", waited)
		}
		if err := h.Release(t.Context()); !errors.Is(err, IdleError{}) {
			t.Errorf("the release: %v", err)
		}
	})
}

// TestAnEndThatErrHasFoundStands lets a beat come between the moment at which Err has read the
// counter and its decision, so that the core sees the beat first. The decision of Err counts: the
// lock stays taken for its delay, and its end has a reason.
func TestAnEndThatErrHasFoundStands(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	r := b.holdWith(Terms{Idle: time.Second, Delay: time.Minute})
	until := r.Terms.idle.until.Load()
	b.now = clock.Time(until)
	r.Terms.beats.n.Add(1)
	b.turn()
	b.quiet()
	r.Terms.idle.ended.Store(until)
	b.core.Cancel(b.now, r)
	b.turn()
	b.outcome(r, OutcomeLost, IdleError{})
	if len(b.commands) != 1 || b.commands[0].Kind != lockfsm.Detach {
		t.Errorf("it sends %+v", b.commands)
	}
}

// TestABeatInAPauseCounts pauses the process between the reading of the clock and that of the
// counter. A beat in the pause is later than the time of the turn, and the idle time counts from
// that beat.
func TestABeatInAPauseCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	r := b.holdWith(Terms{Idle: time.Second})
	for range 3 {
		b.now = r.Terms.idle.next
		r.Terms.beats.n.Add(1)
		b.turn() // reads the counter 3/4 of a second late
		b.quiet()
		b.advance(750 * time.Millisecond)
		b.turn()
		b.quiet()
		b.advance(999 * time.Millisecond)
		b.turn()
		b.quiet()
	}
}

// TestAnUpgradeEndsWithItsIdleHold ends the upgrade before its hold, and both not before the beats
// of the hold stop.
func TestAnUpgradeEndsWithItsIdleHold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	terms := upgradableTerms()
	terms.Idle = time.Second
	hold, up := b.upgraded(terms)
	for range 10 {
		b.advance(250 * time.Millisecond)
		b.turn()
		b.quiet()
		b.advance(1)
		b.turn()
		b.quiet()
		hold.Terms.beats.n.Add(1)
	}
	b.advance(time.Second)
	b.turn()
	b.quiet() // it learns only now of the last beat
	b.advance(1)
	b.turn()
	b.advance(time.Second)
	b.turn()
	b.both(up, hold, OutcomeLost, IdleError{})
}

// TestIdleHoldsAreListed ends a hold with Idle in each way that there is. Until then it is listed
// with the time since its last beat, and afterwards nothing of it is kept.
func TestIdleHoldsAreListed(t *testing.T) {
	t.Parallel()
	const idle = 20 * time.Second
	me, leader := nodeidtest.ID(100), nodeidtest.ID(1)
	for name, c := range map[string]struct {
		terms Terms
		end   func(t *testing.T, w *world, h *Hold)
	}{
		"Release":     {Terms{}, func(t *testing.T, _ *world, h *Hold) { _ = h.Release(t.Context()) }},
		"ReleaseSoon": {Terms{}, func(_ *testing.T, _ *world, h *Hold) { _ = h.ReleaseSoon() }},
		"Detach":      {Terms{Delay: time.Hour}, func(t *testing.T, _ *world, h *Hold) { _ = h.Detach(t.Context()) }},
		"Lapse":       {Terms{}, func(_ *testing.T, _ *world, h *Hold) { _ = h.Lapse("why") }},
		"idle":        {Terms{}, func(*testing.T, *world, *Hold) { time.Sleep(2 * idle) }},
		"overdue":     {Terms{Longest: 15 * time.Second}, func(*testing.T, *world, *Hold) { time.Sleep(2 * idle) }},
		"the lease":   {Terms{}, func(_ *testing.T, w *world, _ *Hold) { w.cutOff(); time.Sleep(2 * worldTTL) }},
		"a doubt": {Terms{Grace: idle / 4}, func(t *testing.T, w *world, h *Hold) {
			w.cutOff()
			awaitDoubt(t, h)
			if list := w.clients[me].IdleHolds(); len(list) != 1 {
				t.Errorf("in doubt: %+v", list)
			}
			time.Sleep(idle / 2)
		}},
		"Rebind": {Terms{}, func(_ *testing.T, w *world, _ *Hold) {
			w.clients[me].Rebind([]byte{1}, []nodeid.Endpoint{{ID: leader}})
		}},
		"Close": {Terms{}, func(_ *testing.T, w *world, _ *Hold) { w.clients[me].Close() }},
		"an upgrade, then Release": {Terms{Modes: []lockfsm.Mode{lockfsm.ModeU}}, func(t *testing.T, w *world, h *Hold) {
			up := &Hold{}
			if err := h.upgradeInto(t.Context(), up); err != nil {
				t.Fatal(err)
			}
			if list := w.clients[me].IdleHolds(); len(list) != 1 || list[0].Token != h.Token() {
				t.Errorf("upgraded: %+v", list)
			}
			_ = errors.Join(up.Release(t.Context()), h.Release(t.Context()))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, leader)
				defer w.close()
				w.elect(leader)
				c.terms.Idle = idle
				h, err := w.take(me, c.terms)
				if err != nil {
					t.Fatal(err)
				}
				listed := func(least, most time.Duration) {
					t.Helper()
					list := w.clients[me].IdleHolds()
					if len(list) != 1 || list[0].Idle < least || list[0].Idle > most {
						t.Fatalf("listed %+v, want one with %v to %v", list, least, most)
					}
					if want := (IdleHold{"x", h.Token(), idle, list[0].Idle}); list[0] != want {
						t.Errorf("listed %+v, want %+v", list[0], want)
					}
				}
				listed(0, 0)
				time.Sleep(8 * time.Second)
				listed(8*time.Second, 8*time.Second)
				h.Beat()
				listed(0, 0)
				time.Sleep(6 * time.Second)
				listed(6*time.Second-idle/4, 6*time.Second)
				c.end(t, w, h)
				synctest.Wait()
				if list, kept := w.clients[me].IdleHolds(), w.clients[me].idle.all; len(list) != 0 || len(kept) != 0 {
					t.Errorf("afterwards %+v is listed, and %d are kept", list, len(kept))
				}
			})
		})
	}
}

// TestAnAbandonedGrantIsNotListed ends the wait of a caller in the turn in which its grant arrives.
func TestAnAbandonedGrantIsNotListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nodeidtest.ID(1))
		defer w.close()
		w.elect(nodeidtest.ID(1))
		c := w.clients[nodeidtest.ID(100)]
		ctx, cancel := context.WithCancel(t.Context())
		w.mu.Lock()
		w.onReply = cancel
		w.mu.Unlock()
		for range 50 {
			h := &Hold{}
			err := c.AcquireInto(ctx, h, &Request{Key: "x", Terms: &Terms{Idle: time.Minute}})
			if err == nil {
				err = h.Release(t.Context())
			}
			synctest.Wait()
			if n := len(c.idle.all); n != 0 {
				t.Fatalf("%d are kept after %v", n, err)
			}
			ctx, cancel = context.WithCancel(t.Context())
			w.mu.Lock()
			w.onReply = cancel
			w.mu.Unlock()
		}
		cancel()
	})
}
