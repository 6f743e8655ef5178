package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	keeping "github.com/mortise-lock/mortise/keep"
)

const longGrace = 5 * time.Minute

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// regain waits for the end of a doubt, for at most the grace.
func regain(t *testing.T, l *mortise.Lock) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longGrace)
	defer cancel()
	return l.Regain(ctx)
}

// awaitDoubt waits until the lock is in doubt.
func awaitDoubt(t *testing.T, l *mortise.Lock) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(time.Minute):
		t.Fatalf("Done is open: %v", l.Err())
	}
}

// noMajority cuts each node off from all others.
func (f *fleet) noMajority() {
	for i := range f.nodes {
		f.isolate(i)
	}
}

func (f *fleet) rejoinAll() {
	for i := range f.nodes {
		f.rejoin(i)
	}
}

// TestALockSurvivesAnOutageOfTheGroup leaves the group without a majority for several TTLs. The
// lock with a grace is in doubt meanwhile, and good again afterwards, with the same token. The lock
// without a grace is lost.
func TestALockSurvivesAnOutageOfTheGroup(t *testing.T) {
	slow.UnderRace(t)
	for _, who := range []string{"follower", "leader"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 3)
				holder := f.leader()
				if who == "follower" {
					holder = f.follower()
				}
				mine := f.acquire(holder, mortise.Request{Key: "k", JeopardyGrace: longGrace})
				plain := f.lock(holder, "plain")
				next := f.later((holder+1)%3, mortise.Request{Key: "k"})
				synctest.Wait()
				token, done, ctx := mine.Token(), mine.Done(), mine.Context(t.Context())
				f.noMajority()
				awaitDoubt(t, mine)
				if !closed(done) {
					t.Error("the Done from before the doubt is open")
				}
				inDoubt(t, f.nodes[holder].Node, mine, ctx)
				wantIs(t, plain.Err(), mortise.ErrLost)
				time.Sleep(20 * time.Second)
				wantIs(t, mine.Err(), mortise.ErrInJeopardy)
				f.rejoinAll()
				if err := regain(t, mine); err != nil {
					t.Fatalf("Regain: %v", err)
				}
				if err := mine.Err(); err != nil || mine.Token() != token || closed(mine.Done()) {
					t.Errorf("good again: %v, token %d after %d, Done is closed: %v", err, mine.Token(), token,
						closed(mine.Done()))
				}
				if ctx.Err() == nil || mine.Context(t.Context()).Err() != nil {
					t.Error("the old context lives, or a new one does not")
				}
				if held, err := f.nodes[holder].Check(t.Context(), "k", token); err != nil || !held {
					t.Errorf("Check: %v, %v", held, err)
				}
				waits(t, "the next request", next)
				again, err := f.nodes[holder].Lock(mine.Context(t.Context()), "k")
				if err != nil || again.Token() != token {
					t.Fatalf("entered again: %v", err)
				}
				unlock(t, again)
				unlock(t, mine)
				unlock(t, <-next)
				f.ready()
				f.nothingLeft()
			})
		})
	}
}

// inDoubt checks what a caller sees of a lock in doubt.
func inDoubt(t *testing.T, n *mortise.Node, l *mortise.Lock, ctx context.Context) {
	t.Helper()
	wantIs(t, l.Err(), mortise.ErrInJeopardy)
	if errors.Is(l.Err(), mortise.ErrLost) || !closed(l.Done()) {
		t.Errorf("a lock in doubt: %v, Done is closed: %v", l.Err(), closed(l.Done()))
	}
	synctest.Wait()
	wantIs(t, context.Cause(ctx), mortise.ErrInJeopardy)
	wantIs(t, context.Cause(l.Context(t.Context())), mortise.ErrInJeopardy)
	wantIs(t, l.Downgrade(t.Context()), mortise.ErrInJeopardy)
	under := context.WithoutCancel(ctx)
	for _, key := range []string{l.Key(), "another"} {
		_, err := n.Lock(under, key)
		wantIs(t, err, mortise.ErrInJeopardy)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wantIs(t, l.Regain(short), context.DeadlineExceeded)
}

// TestADoubtIsLostToTheNextHolder cuts off a holder whose leader lives, expires its session, and
// grants the lock to another instance.
func TestADoubtIsLostToTheNextHolder(t *testing.T) {
	slow.UnderRace(t)
	for _, who := range []string{"follower", "leader"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 3)
				holder := f.leader()
				if who == "follower" {
					holder = f.follower()
				}
				mine := f.acquire(holder, mortise.Request{Key: "k", JeopardyGrace: longGrace})
				f.isolate(holder)
				next := f.lock((holder+1)%3, "k")
				wantIs(t, mine.Err(), mortise.ErrInJeopardy)
				f.rejoin(holder)
				wantIs(t, regain(t, mine), mortise.ErrLost)
				wantIs(t, mine.Err(), mortise.ErrLost)
				wantIs(t, mine.Unlock(t.Context()), mortise.ErrLost)
				if err := next.Err(); err != nil {
					t.Error(err)
				}
				f.ready()
				unlock(t, next)
				f.nothingLeft()
			})
		})
	}
}

// TestAGraceIsOver checks that a lock in doubt is lost after its grace, and free soon after the
// group works again.
func TestAGraceIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		holder := f.follower()
		mine := f.acquire(holder, mortise.Request{Key: "k", JeopardyGrace: 10 * time.Second})
		f.noMajority()
		awaitDoubt(t, mine)
		began := time.Now()
		wantIs(t, mine.Regain(t.Context()), mortise.ErrLost)
		if took := time.Since(began); took < 10*time.Second-time.Millisecond || took > 11*time.Second {
			t.Errorf("lost after %v in doubt", took)
		}
		f.rejoinAll()
		f.ready()
		unlock(t, f.lock((holder+1)%3, "k"))
		wantIs(t, mine.Unlock(t.Context()), mortise.ErrLost)
		f.nothingLeft()
	})
}

// TestUnlockInDoubt releases a lock while it is in doubt.
func TestUnlockInDoubt(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		holder := f.follower()
		mine := f.acquire(holder, mortise.Request{Key: "k", JeopardyGrace: longGrace})
		second := f.acquire(holder, mortise.Request{Key: "l", JeopardyGrace: longGrace})
		f.noMajority()
		awaitDoubt(t, mine)
		time.AfterFunc(time.Second, f.rejoinAll)
		wantIs(t, second.UnlockSoon(), mortise.ErrLost)
		if err := mine.Unlock(t.Context()); err != nil {
			t.Errorf("the group knew the hold: %v", err)
		}
		wantIs(t, mine.Err(), mortise.ErrUnlocked)
		f.ready()
		f.nothingLeft()
	})
}

func TestHooksHearOfADoubt(t *testing.T) {
	slow.UnderRace(t)
	for _, c := range []struct {
		name  string
		heals bool
		ends  func(*mortise.Lock) error
		want  []mortise.Outcome
	}{
		{"regained", true, nil, []mortise.Outcome{mortise.OutcomeInDoubt, mortise.OutcomeRegained}},
		{"lost", false, nil, []mortise.Outcome{mortise.OutcomeInDoubt, mortise.OutcomeLease}},
		{"unlocked", true, func(l *mortise.Lock) error { return l.Unlock(context.Background()) },
			[]mortise.Outcome{mortise.OutcomeInDoubt, mortise.OutcomeConfirmed}},
		{"unlocked soon", true, (*mortise.Lock).UnlockSoon,
			[]mortise.Outcome{mortise.OutcomeInDoubt, mortise.OutcomeUnconfirmed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				var told []mortise.Outcome
				tell := func(e mortise.LockEvent) {
					mu.Lock()
					defer mu.Unlock()
					good := e.Outcome == mortise.OutcomeRegained || e.Outcome == mortise.OutcomeConfirmed
					if e.Tag != "tag" || e.Key != "k" || (e.Err == nil) != good {
						t.Errorf("event %+v", e)
					}
					told = append(told, e.Outcome)
				}
				f := startFleet(t, 3, func(c *mortise.Config) {
					c.Hooks = &mortise.Hooks{InDoubt: tell, Lost: tell,
						Unlocked: func(_ context.Context, e mortise.LockEvent) { tell(e) },
						Acquired: func(context.Context, mortise.LockEvent) any { return "tag" }}
				})
				mine := f.acquire(f.follower(), mortise.Request{Key: "k", JeopardyGrace: time.Minute})
				f.noMajority()
				awaitDoubt(t, mine)
				synctest.Wait() // hooks on different goroutines have no order
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					if c.ends != nil {
						_ = c.ends(mine)
					}
				}()
				synctest.Wait() // once the network is healed, the lock may be regained at this instant
				if c.heals {
					f.rejoinAll()
				}
				<-ended
				_ = mine.Regain(t.Context())
				time.Sleep(time.Second) // other hooks of the fleet may block
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(told, c.want) {
					t.Errorf("told %q, want %q", told, c.want)
				}
				f.rejoinAll()
			})
		})
	}
}

func TestEnteringALockWithAGrace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		n := f.nodes[0]
		mine := f.acquire(0, mortise.Request{Key: "k", JeopardyGrace: time.Minute})
		ctx := mine.Context(t.Context())
		for field, r := range map[string]mortise.Request{
			"":              {Key: "k", JeopardyGrace: time.Second},
			"JeopardyGrace": {Key: "k", JeopardyGrace: time.Hour},
		} {
			l, err := n.Acquire(ctx, r)
			var entered *mortise.EnteredError
			if errors.As(err, &entered) != (field != "") || field != "" && entered.Field != field {
				t.Errorf("%q: %v", field, err)
			}
			if err == nil {
				unlock(t, l)
			}
		}
		for _, r := range []mortise.Request{
			{Key: "k", JeopardyGrace: -1}, {Key: "k", JeopardyGrace: 8 * 24 * time.Hour},
		} {
			_, err := n.Acquire(t.Context(), r)
			wantIs(t, err, mortise.ErrBadRequest)
		}
		if err := mine.Regain(t.Context()); err != nil {
			t.Errorf("a good lock: %v", err)
		}
		unlock(t, mine)
		wantIs(t, mine.Regain(t.Context()), mortise.ErrUnlocked)
	})
}

// TestWorkGoesOnAfterAnOutage runs functions of packages election and keep through an outage of the
// group. Each function ends in doubt, and is called again on the same instance with the same token.
func TestWorkGoesOnAfterAnOutage(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		var terms []string
		work := func(name string) func(context.Context, mortise.Token) error {
			return func(ctx context.Context, now mortise.Token) error {
				mu.Lock()
				terms = append(terms, fmt.Sprint(name, now))
				mu.Unlock()
				<-ctx.Done()
				return nil
			}
		}
		var all sync.WaitGroup
		for i, n := range f.nodes {
			e := election.New(n, "election", election.Options{JeopardyGrace: longGrace})
			led, held := work(fmt.Sprint(i, " leads with ")), work(fmt.Sprint(i, " holds "))
			all.Go(func() {
				_ = e.Run(ctx, "", func(ctx context.Context, l *election.Leadership) error { return led(ctx, l.Token()) })
			})
			all.Go(func() {
				r := mortise.Request{Key: "keep", JeopardyGrace: longGrace}
				_ = keeping.Run(ctx, n, r, keeping.Options{}, func(ctx context.Context, l *mortise.Lock) error {
					return held(ctx, l.Token())
				})
			})
		}
		time.Sleep(time.Second)
		f.noMajority()
		time.Sleep(20 * time.Second)
		f.rejoinAll()
		f.ready()
		time.Sleep(10 * time.Second)
		mu.Lock()
		slices.Sort(terms)
		if len(terms) != 4 || terms[0] != terms[1] || terms[2] != terms[3] || terms[0] == terms[2] {
			t.Errorf("the terms are %q", terms)
		}
		mu.Unlock()
		stop()
		all.Wait()
		f.nothingLeft()
	})
}

// TestLeaveDoesNotWaitForADoubt checks that Regain ends when the node begins to leave.
func TestLeaveDoesNotWaitForADoubt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		holder := f.follower()
		mine := f.acquire(holder, mortise.Request{Key: "k", JeopardyGrace: longGrace})
		f.noMajority()
		awaitDoubt(t, mine)
		left := make(chan error, 1)
		time.AfterFunc(time.Second, func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			left <- f.nodes[holder].Leave(ctx)
		})
		wantIs(t, mine.Regain(t.Context()), mortise.ErrLeaving)
		f.rejoinAll()
		if err := mine.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock: %v", err)
		}
		if err := <-left; err != nil {
			t.Errorf("Leave: %v", err)
		}
	})
}
