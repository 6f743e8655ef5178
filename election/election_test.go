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
		if leader, err := g.election(Options{}).Leader(t.Context()); err != nil || leader != (Leader{Name: "node", Value: "10.0.0.7", Token: l.Token()}) {
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

// In the grace there is a queue, and nobody leads.
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

// observed is what an observer is told of what a test does to the group.
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
			continue // it must end by itself
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
		if g.asked < 25 || g.asked > 52 {
			t.Errorf("asked %d times in 25 s, want one question in 0.5 s to 1 s", g.asked)
		}
	})
}

// What comes and goes between two questions is skipped.
func TestObserveSkipsWhatIsShorterThanItsInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{}
		e := g.election(Options{})
		tokens, _ := observed(t, g, Options{Interval: time.Hour}, func() {
			time.Sleep(time.Second)
			for range 10 {
				l, _ := e.Campaign(t.Context(), "a")
				_ = l.Resign(t.Context())
			}
			l, _ := e.Campaign(t.Context(), "a")
			time.Sleep(time.Hour)
			_ = l.Resign(t.Context())
		})
		if got := fmt.Sprint(tokens); got != "[0 11]" {
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

// A loop that is left asks no more.
func TestObserveCanBeLeft(t *testing.T) {
	g := &group{}
	for range g.election(Options{}).Observe(t.Context()) {
		break
	}
	if g.asked != 1 {
		t.Errorf("asked %d times", g.asked)
	}
}

// An answer of the past is never told, whoever gives it.
func TestObservedTokensRise(t *testing.T) {
	var s sighting
	var told []mortise.Token
	for _, token := range []mortise.Token{0, 0, 5, 5, 4, 0, 0, 4, 5, 6, 6} {
		if s.news(token) {
			told = append(told, token)
		}
	}
	if got := fmt.Sprint(told); got != "[0 5 0 6]" {
		t.Errorf("told of %s", got)
	}
}

// Observers that begin together do not go on asking together.
func TestPausesAreSpread(t *testing.T) {
	const d = time.Second
	low, high := d, time.Duration(0)
	for range 1000 {
		p := jittered(d)
		low, high = min(low, p), max(high, p)
	}
	if low < d/2 || high > d || high-low < d/4 {
		t.Errorf("pauses from %v to %v", low, high)
	}
	if p := jittered(1); p != 1 {
		t.Errorf("a pause of %v for 1 ns", p)
	}
}
