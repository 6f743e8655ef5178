package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// doubtWorld returns a world in which client 100 holds x with a grace.
func doubtWorld(t *testing.T) (*world, *Hold) {
	t.Helper()
	w := newWorld(t, 2, nodeidtest.ID(1))
	w.elect(nodeidtest.ID(1))
	h, err := w.take(nodeidtest.ID(100), Terms{Grace: benchGrace})
	if err != nil {
		t.Fatal(err)
	}
	return w, h
}

// awaitDoubt waits until Done is closed.
func awaitDoubt(t *testing.T, h *Hold) {
	t.Helper()
	select {
	case <-h.Done():
	case <-time.After(2 * worldTTL):
		t.Fatalf("Done is open: %v", h.Err())
	}
}

// cutOff cuts client 100 off from its leader.
func (w *world) cutOff() {
	w.isolate(nodeidtest.ID(100), true)
	w.keepers[nodeidtest.ID(1)].Down(nodeidtest.ID(100))
	w.clients[nodeidtest.ID(100)].Down(nodeidtest.ID(1))
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestShellRegains leaves the group without a leader for longer than a TTL, so that no session
// expires.
func TestShellRegains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := doubtWorld(t)
		defer w.close()
		token, done := h.Token(), h.Done()
		deadline := w.clients[nodeidtest.ID(100)].Status().Deadline
		w.elect(nodeid.ID{})
		awaitDoubt(t, h)
		if err := h.Err(); err != ErrInJeopardy || !closed(done) || !closed(h.Done()) || h.Until() != deadline {
			t.Fatalf("in doubt: %v, since %v, want %v", err, h.Until(), deadline)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Regain(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Regain: %v", err)
		}
		if err := h.Downgrade(t.Context(), toReader()); err != ErrInJeopardy {
			t.Errorf("Downgrade: %v", err)
		}
		time.AfterFunc(3*time.Second, func() { w.elect(nodeidtest.ID(1)) })
		if err := h.Regain(t.Context()); err != nil || h.Err() != nil {
			t.Fatalf("Regain: %v, then %v", err, h.Err())
		}
		if h.Token() != token || closed(h.Done()) || h.Until() != 0 {
			t.Errorf("token %d after %d, Done is closed: %v, until %v", h.Token(), token, closed(h.Done()), h.Until())
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		w.empty()
	})
}

// TestShellDoubtIsLostToAnother checks that a hold whose session the leader has expired is lost,
// since the time at which its doubt began.
func TestShellDoubtIsLostToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := doubtWorld(t)
		defer w.close()
		deadline := w.clients[nodeidtest.ID(100)].Status().Deadline
		w.cutOff()
		other := w.lock(nodeidtest.ID(101), "x")
		if err := h.Err(); err != ErrInJeopardy {
			t.Fatalf("while another holds the lock: %v", err)
		}
		w.isolate(nodeidtest.ID(100), false)
		if err := h.Regain(t.Context()); err != ErrLost || h.Until() != deadline {
			t.Errorf("Regain: %v, until %v, want %v", err, h.Until(), deadline)
		}
		if err := h.Release(t.Context()); err != ErrLost {
			t.Errorf("Release: %v", err)
		}
		other.Release(t.Context())
		w.empty()
	})
}

func TestShellGraceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := doubtWorld(t)
		defer w.close()
		deadline := w.clients[nodeidtest.ID(100)].Status().Deadline
		w.elect(nodeid.ID{})
		if err := h.Regain(t.Context()); err != nil {
			t.Fatal(err)
		}
		awaitDoubt(t, h)
		if err := h.Regain(t.Context()); err != ErrLost || h.Until() != deadline || !closed(h.Done()) {
			t.Errorf("%v, until %v, want %v", err, h.Until(), deadline)
		}
		if now := w.clock.Now(); now != deadline.Add(benchGrace) {
			t.Errorf("lost %v after the deadline", now.Sub(deadline))
		}
		w.elect(nodeidtest.ID(1))
		w.lock(nodeidtest.ID(101), "x").Release(t.Context())
		w.empty()
	})
}

// TestShellErrIsAheadOfTheCore moves the clock that callers read while the client's goroutine is in
// a turn. The first call of Err begins the doubt, and only the core can end it.
func TestShellErrIsAheadOfTheCore(t *testing.T) {
	for name, c := range map[string]struct {
		terms Terms
		leap  time.Duration
		err   error
	}{
		"in doubt":    {Terms{Grace: benchGrace}, worldTTL, ErrInJeopardy},
		"grace over":  {Terms{Grace: benchGrace}, worldTTL + benchGrace, ErrLost},
		"overdue":     {Terms{Grace: benchGrace, Longest: 2 * worldTTL}, 3 * worldTTL, OverdueError{}},
		"overdue now": {Terms{Grace: benchGrace, Longest: worldTTL / 2}, worldTTL, OverdueError{}},
		"idle":        {Terms{Grace: benchGrace, Idle: 2 * worldTTL}, 3 * worldTTL, IdleError{}},
		"idle now":    {Terms{Grace: benchGrace, Idle: worldTTL / 2}, worldTTL, IdleError{}},
		"idle first":  {Terms{Grace: benchGrace, Idle: worldTTL / 2, Longest: worldTTL * 2 / 3}, worldTTL, IdleError{}},
		"idle later": {Terms{Grace: benchGrace, Idle: worldTTL * 2 / 3, Longest: worldTTL / 2}, worldTTL,
			OverdueError{}},
		"both in doubt": {Terms{Grace: benchGrace, Idle: 2 * worldTTL, Longest: 2*worldTTL + 1}, 3 * worldTTL,
			IdleError{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, nodeidtest.ID(1))
				defer w.close()
				leaping := w.leap()
				w.elect(nodeidtest.ID(1))
				var told []error
				h := &Hold{}
				h.OnLoss(func(_ Loss, err error) { told = append(told, err) })
				r := &Request{Key: "x", Terms: &c.terms}
				if err := w.clients[nodeidtest.ID(100)].AcquireInto(t.Context(), h, r); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				before := h.Done()
				goOn := w.holdUp()
				defer goOn()
				leaping.leap.Advance(c.leap)
				for range 2 {
					if err := h.Err(); err != c.err {
						t.Fatalf("Err: %v", err)
					}
				}
				if !closed(before) || !closed(h.Done()) {
					t.Error("Done is open")
				}
				leaping.leap.Advance(-c.leap)
				goOn()
				synctest.Wait()
				if c.err != ErrInJeopardy {
					if h.Err() != c.err || w.counts().Entries != 0 || told[len(told)-1] != c.err {
						t.Errorf("then %v, with %+v, told %v", h.Err(), w.counts(), told)
					}
					return
				}
				if h.Err() != nil || !closed(before) || closed(h.Done()) {
					t.Errorf("not good again: %v", h.Err())
				}
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if !slices.Equal(told, []error{ErrInJeopardy, nil}) {
					t.Errorf("told %v", told)
				}
			})
		})
	}
}

func TestShellReleaseInDoubt(t *testing.T) {
	for _, c := range []struct {
		name    string
		lose    bool // another client gets the lock meanwhile
		release func(*Hold) error
		want    error
	}{
		{"confirmed", false, func(h *Hold) error { return h.Release(context.Background()) }, nil},
		{"lost", true, func(h *Hold) error { return h.Release(context.Background()) }, ErrLost},
		{"soon", false, (*Hold).ReleaseSoon, ErrLost},
		{"soon and lost", true, (*Hold).ReleaseSoon, ErrLost},
		{"detached", false, func(h *Hold) error { return h.Detach(context.Background()) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, h := doubtWorld(t)
				defer w.close()
				if c.lose {
					w.cutOff()
					w.lock(nodeidtest.ID(101), "x").Release(t.Context())
				} else {
					w.elect(nodeid.ID{})
				}
				awaitDoubt(t, h)
				time.AfterFunc(time.Second, func() {
					w.isolate(nodeidtest.ID(100), false)
					w.elect(nodeidtest.ID(1))
				})
				if err := c.release(h); err != c.want {
					t.Errorf("released: %v", err)
				}
				if h.Err() != ErrReleased && !c.lose {
					t.Errorf("Err: %v", h.Err())
				}
				time.Sleep(2 * worldTTL)
				w.empty()
			})
		})
	}
}

func TestCloseEndsADoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := doubtWorld(t)
		defer w.close()
		w.elect(nodeid.ID{})
		awaitDoubt(t, h)
		time.AfterFunc(time.Second, w.clients[nodeidtest.ID(100)].Close)
		if err := h.Regain(t.Context()); err != ErrLost && err != ErrClosed {
			t.Errorf("Regain: %v", err)
		}
		synctest.Wait()
		if h.Err() != ErrLost {
			t.Errorf("Err: %v", h.Err())
		}
	})
}

// orders records the outputs of a core in their order.
type orders struct{ all []string }

func (o *orders) Nonce() lockfsm.Nonce                       { return lockfsm.Nonce{9} }
func (o *orders) Lost(*Outcome)                              { o.all = append(o.all, "lost") }
func (o *orders) Doubt(*Outcome)                             { o.all = append(o.all, "doubt") }
func (o *orders) Stay(*Outcome)                              {}
func (o *orders) Publish(_, _ clock.Time)                    { o.all = append(o.all, "publish") }
func (o *orders) Send(nodeid.Endpoint, []byte, []byte) error { return nil }
func (o *orders) Outcome(each *Outcome) {
	if each.Kind == OutcomeGood {
		o.all = append(o.all, "good")
	}
}

// TestDoubtIsMarkedBeforeThePublication reads the acknowledgement that confirms a hold in the turn
// in which its doubt begins. Its caller must not see the new deadline before the mark, and must not
// see the hold good before the new deadline.
func TestDoubtIsMarkedBeforeThePublication(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.attach()
	_, plain := b.holdWith(Terms{Grace: benchGrace}), b.hold("plain")
	b.advance(benchTTL / 3)
	b.want("1: renew 1")
	b.now = b.deadline
	b.reply(b.to.ID, b.renewed())
	o := &orders{}
	b.core.Turn(b.now, o)
	if want := []string{"doubt", "lost", "publish", "good"}; !slices.Equal(o.all, want) || plain.stage != stageOver {
		t.Errorf("the order is %q, want %q", o.all, want)
	}
}

// TestErrDuringADoubt calls Err from several goroutines while doubts begin and end. The race
// detector and the order of the results are the judges.
func TestErrDuringADoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := doubtWorld(t)
		defer w.close()
		over := make(chan struct{})
		var callers sync.WaitGroup
		for i := range 4 {
			callers.Go(func() {
				for !closed(over) {
					if err := h.Err(); err != nil && err != ErrInJeopardy {
						t.Errorf("Err: %v", err)
					}
					time.Sleep(time.Duration(i+1) * time.Millisecond)
				}
			})
		}
		for range 3 {
			w.elect(nodeid.ID{})
			awaitDoubt(t, h)
			w.elect(nodeidtest.ID(1))
			if err := h.Regain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		close(over)
		callers.Wait()
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		w.empty()
	})
}
