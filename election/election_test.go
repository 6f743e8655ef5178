package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

func TestCampaignAndResign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		l, err := g.election(Options{}).Campaign(t.Context(), "10.0.0.7")
		if err != nil {
			t.Fatal(err)
		}
		ctx := l.Context(t.Context())
		if leader, err := g.election(Options{}).Leader(t.Context()); err != nil ||
			leader != (Leader{Name: "node", Value: "10.0.0.7", Token: l.Token()}) {
			t.Errorf("leader %+v, %v", leader, err)
		}
		if l.Err() != nil || ctx.Err() != nil || l.Token() == 0 {
			t.Errorf("%v, %v, token %d", l.Err(), ctx.Err(), l.Token())
		}
		for range 2 {
			if err := l.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		}
		<-l.Done()
		<-ctx.Done()
		if l.Err() != mortise.ErrUnlocked || context.Cause(ctx) != mortise.ErrUnlocked {
			t.Errorf("%v, %v", l.Err(), context.Cause(ctx))
		}
		if leader, err := g.election(Options{}).Leader(t.Context()); err != nil || leader != (Leader{}) {
			t.Errorf("leader %+v, %v", leader, err)
		}
	})
}

func TestAWaiterIsNoLeader(t *testing.T) {
	g := &group{queue: []*term{{value: "waits"}}}
	if leader, err := g.election(Options{}).Leader(t.Context()); err != nil || leader != (Leader{}) {
		t.Errorf("leader %+v, %v", leader, err)
	}
}

func TestACampaignThatGivesUpLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		l, err := g.election(Options{}).Campaign(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if l, err := g.election(Options{}).Campaign(ctx, "b"); l != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v", l, err)
		}
		if len(g.queue) != 1 {
			t.Errorf("%d are in the queue", len(g.queue))
		}
		_ = l.Resign(t.Context())
	})
}

func observed(t *testing.T, g *group, o Options, do func()) (tokens []mortise.Token, last error) {
	ctx, stop := context.WithCancelCause(t.Context())
	var doing sync.WaitGroup
	defer doing.Wait()
	doing.Go(func() {
		do()
		stop(errEnough)
	})
	for leader, err := range g.election(o).Observe(ctx) {
		if err != nil {
			if leader != (Leader{}) {
				t.Errorf("%+v with %v", leader, err)
			}
			last = err
			continue // the observer must end the loop by itself
		}
		tokens = append(tokens, leader.Token)
	}
	return tokens, last
}

var errEnough = errors.New("enough")

func TestObserveTellsEveryChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		e := g.election(Options{})
		tokens, err := observed(t, g, Options{}, func() {
			time.Sleep(5 * time.Second)
			for range 3 {
				l, err := e.Campaign(t.Context(), "a")
				if err != nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Second)
				_ = l.Resign(t.Context())
			}
			time.Sleep(5 * time.Second)
		})
		if got := fmt.Sprint(tokens); got != "[0 1 2 3 0]" || err != errEnough {
			t.Errorf("told of %s, and then %v", got, err)
		}
	})
}

// TestObserveTellsWhatIsShort checks that each leadership is reported, however short. If another
// leadership follows directly, the zero Leader must not be reported.
func TestObserveTellsWhatIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		tokens, _ := observed(t, g, Options{}, func() {
			synctest.Wait()
			first, _ := g.election(Options{}).Campaign(t.Context(), "a")
			var next sync.WaitGroup
			for range 9 {
				next.Go(func() {
					l, err := g.election(Options{}).Campaign(t.Context(), "b")
					if err != nil {
						t.Error(err)
						return
					}
					_ = l.Resign(t.Context())
				})
			}
			synctest.Wait() // so that they wait in the queue behind the first one
			_ = first.Resign(t.Context())
			next.Wait()
			synctest.Wait()
		})
		if got := fmt.Sprint(tokens); got != "[0 1 2 3 4 5 6 7 8 9 10 0]" {
			t.Errorf("told of %s", got)
		}
	})
}

func TestObserveBehindAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		tokens, _ := observed(t, g, Options{}, func() {
			l, _ := g.election(Options{}).Campaign(t.Context(), "a")
			synctest.Wait()
			g.forget()
			synctest.Wait()
			g.mu.Lock()
			for range 2 { // the observer misses the second leadership and the end of the first
				first := g.queue[0]
				g.queue, first.token = nil, g.token+1
				g.token++
				g.queue = append(g.queue, first)
			}
			g.mu.Unlock()
			g.forget()
			synctest.Wait()
			g.mu.Lock()
			g.queue = nil
			g.mu.Unlock()
			g.forget()
			synctest.Wait()
			_ = l
		})
		if got := fmt.Sprint(tokens); got != "[1 3 0]" && got != "[0 1 3 0]" {
			t.Errorf("told of %s", got)
		}
	})
}

func TestObserveEndsWithTheErrorOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		tokens, err := observed(t, g, Options{}, func() {
			time.Sleep(5 * time.Second)
			g.refuse(mortise.ErrClosed)
			time.Sleep(5 * time.Second)
		})
		if fmt.Sprint(tokens) != "[0]" || err != mortise.ErrClosed {
			t.Errorf("told of %v, and then %v", tokens, err)
		}
	})
}

func TestObserveCanBeLeft(t *testing.T) {
	g := &group{}
	for range g.election(Options{}).Observe(t.Context()) {
		break
	}
	if g.watching != 0 {
		t.Error("it still watches")
	}
}

// Token 0 is an EventCurrent, and a negative token is the end of a hold. Leaderships with lower or
// repeated tokens must not be reported.
func TestObservedTokensRise(t *testing.T) {
	s := observation{name: "e"}
	var told []mortise.Token
	for _, token := range []int{0, 0, 5, 5, 4, -4, 0, 0, 4, -4, 0, 5, 6, 7, -7, 8, 0, -7, 0, -8, 0, 0,
		7, 0, -7, 0, 8, 0, -8, 0, 9} { // after a time without a leader the earlier ones come again
		e := mortise.Event{Kind: mortise.EventHeld, Part: mortise.Part{Key: "e"},
			Hold: mortise.Hold{Token: mortise.Token(max(token, -token))}}
		switch {
		case token == 0:
			e = mortise.Event{Kind: mortise.EventCurrent}
		case token < 0:
			e.Kind = mortise.EventFreed
		}
		if s.news(&e) {
			told = append(told, s.now.Token)
		}
		e.Key = "e/other"
		if token != 0 && s.news(&e) {
			t.Errorf("%+v is of another key", e)
		}
	}
	if got := fmt.Sprint(told); got != "[0 5 6 7 8 0 9]" {
		t.Errorf("told of %s", got)
	}
}
