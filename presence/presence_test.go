package presence

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

func names(all []Member) (list []string) {
	for _, m := range all {
		list = append(list, m.Value)
	}
	return list
}

// watching collects what Observe yields.
func watching(t *testing.T, node *mortise.Node) (next func() []string) {
	seen := make(chan []Member, 100)
	go func() {
		for all, err := range Observe(t.Context(), node, "workers") {
			if err != nil {
				return
			}
			seen <- all
		}
	}()
	return func() []string {
		t.Helper()
		select {
		case all := <-seen:
			return names(all)
		case <-time.After(time.Minute):
			t.Fatal("no change is observed")
			return nil
		}
	}
}

func wants(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("the members are %q, want %q", got, want)
	}
}

func TestMembersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.New(t, 3)
		next := watching(t, c.Node(0))
		wants(t, next())
		join := func(i int, value string) (leave context.CancelCauseFunc, ended chan error) {
			ctx, leave := context.WithCancelCause(t.Context())
			ended = make(chan error, 1)
			go func() { ended <- Run(ctx, c.Node(i), "workers", value) }()
			return leave, ended
		}
		leaveA, endedA := join(0, "a")
		wants(t, next(), "a")
		_, _ = join(1, "b")
		wants(t, next(), "a", "b")
		_, endedC := join(2, "c")
		wants(t, next(), "a", "b", "c")
		_, _ = join(1, "b") // the same instance and value: another member
		wants(t, next(), "a", "b", "c", "b")

		// Keys of other names, and data, are no members.
		other, err := c.Node(1).LockAll(t.Context(), "workers/old/x", "workers/leader")
		if err == nil {
			_, err = c.Node(1).Put(t.Context(), "workers/data", []byte("x"), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		all, err := List(t.Context(), c.Node(2), "workers")
		if err != nil || len(all) != 4 || all[0].Token >= all[1].Token || all[0].ID == all[1].ID {
			t.Errorf("List returns %+v, %v", all, err)
		}
		wants(t, names(all), "a", "b", "c", "b")

		why := errors.New("enough")
		leaveA(why)
		wants(t, next(), "b", "c", "b")
		if err := <-endedA; err != why {
			t.Errorf("Run returns %v", err)
		}

		// A member that is cut off is gone within a TTL and a failover, and comes back.
		began := time.Now()
		c.Isolate(2)
		wants(t, next(), "b", "b")
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it was gone after %v", took)
		}
		c.Heal()
		wants(t, next(), "b", "b", "c")
		if err := c.Node(2).Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-endedC; !errors.Is(err, mortise.ErrLeaving) && !errors.Is(err, mortise.ErrClosed) {
			t.Errorf("Run on a node that leaves returns %v", err)
		}
		wants(t, next(), "b", "b")
		_ = other.Unlock(t.Context())
	})
}

func TestABadNameIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := Run(t.Context(), mortisetest.New(t, 1).Node(0), "a\nb", ""); !errors.Is(err, mortise.ErrBadKey) {
			t.Errorf("Run returns %v", err)
		}
	})
}

// TestSetFollowsTheEvents compares the set with the state, over random events with resets.
func TestSetFollowsTheEvents(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, state, token := newSet("w"), map[string]mortise.Token{}, mortise.Token(0)
		reports := 0
		for range 200 {
			key := "w/" + strings.Repeat("A", 25) + string(rune('A'+r.IntN(5)))
			switch held := state[key]; {
			case r.IntN(20) == 0:
				if held != 0 && r.IntN(2) == 0 { // its end is in a gap of the watch
					delete(state, key)
				}
				s.apply(&mortise.Event{Kind: mortise.EventReset})
				for key, token := range state {
					s.apply(&mortise.Event{Kind: mortise.EventHeld, Part: mortise.Part{Key: key}, Hold: mortise.Hold{Token: token}})
				}
			case held == 0:
				token++
				state[key] = token
				s.apply(&mortise.Event{Kind: mortise.EventHeld, Part: mortise.Part{Key: key}, Hold: mortise.Hold{Token: token}})
				earlier := token - 1
				s.apply(&mortise.Event{Kind: mortise.EventFreed, Part: mortise.Part{Key: key}, Hold: mortise.Hold{Token: earlier}})
			default:
				delete(state, key)
				s.apply(&mortise.Event{Kind: mortise.EventFreed, Part: mortise.Part{Key: key}, Hold: mortise.Hold{Token: held}})
			}
			if r.IntN(3) > 0 {
				continue
			}
			if s.apply(&mortise.Event{Kind: mortise.EventCurrent}) {
				reports++
			}
			if s.apply(&mortise.Event{Kind: mortise.EventCurrent}) {
				t.Fatalf("seed %d: reported twice", seed)
			}
			if all := s.list(); len(all) != len(state) ||
				slices.ContainsFunc(all, func(m Member) bool { return state["w/"+m.ID] != m.Token }) {
				t.Fatalf("seed %d: the set is %v, the state %v", seed, all, state)
			}
		}
		if reports < 20 {
			t.Errorf("seed %d: only %d reports", seed, reports)
		}
	}
}
