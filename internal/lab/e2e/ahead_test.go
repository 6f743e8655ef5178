package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// Each of several requests of one node for the same key sees its own place while it waits, also
// after a change of the leader.
func TestAWaiterSeesItsPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		at := f.follower()
		held := f.acquire(at, mortise.Request{Key: "k", Value: "holder"})
		own := f.session(at, 10*time.Second)
		granted := make(chan *mortise.Lock, 4)
		for i := range 4 {
			ask := f.nodes[at].Acquire
			if i == 2 {
				ask = own.Acquire
			}
			go func() {
				l, err := ask(t.Context(), mortise.Request{Key: "k", Value: fmt.Sprint("job ", i)})
				if err != nil {
					t.Error(err)
				}
				granted <- l
			}()
			time.Sleep(time.Second)
		}
		see := func(from int, value string, want int, waits bool) {
			t.Helper()
			got, is, err := f.nodes[from].Ahead(brief(t), mortise.Request{Key: "k", Value: value})
			if got != want || is != waits || err != nil {
				t.Errorf("%q: %d, %v, %v; want %d, %v", value, got, is, err, want, waits)
			}
		}
		for i := range 4 {
			see(at, fmt.Sprint("job ", i), 1+i, true)
		}
		see(at, "holder", 0, false)
		see(at, "job 9", 0, false)
		see(f.leader(), "job 0", 0, false) // it is not the leader's own
		unlock(t, held)
		next := <-granted
		f.crash(f.leader())
		for i := 1; i < 4; i++ {
			see(at, fmt.Sprint("job ", i), i, true)
		}
		unlock(t, next)
		for range 3 {
			unlock(t, <-granted)
		}
	})
}

// TestARequestSeesItsPlace lets requests of every kind wait for one key. Each is found by what it
// asks for, and not by its value alone.
func TestARequestSeesItsPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 2)
		n := f.nodes[0]
		read := f.acquire(0, mortise.Request{Key: "t/7", Mode: mortise.Upgradable})
		other := f.acquire(1, mortise.Request{Key: "t/7", Mode: mortise.Shared})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _, _ = read.Upgrade(ctx) }) // it waits like a request for the key alone
		time.Sleep(50 * time.Millisecond)
		labels := map[string]string{"job": "nightly"}
		asked := []mortise.Request{{Key: "t/7", Tree: true}, {Key: "t/7"}, {Key: "t/7", Value: "v"},
			{Key: "t/7", Value: "v", Labels: labels}, {Key: "t/7", Labels: labels}, {Key: "t/7", Mode: mortise.Shared},
			{Key: "t/7", Mode: mortise.Shared, Tree: true}, {Key: "t/7", Mode: mortise.Permits(2, 3), Value: "v"},
			{Key: "t/7", Mode: mortise.Upgradable, Value: "v"}, {Key: "t/7", Also: []mortise.Part{{Key: "a"}, {Key: "z"}}},
			{Key: "t/7", Also: []mortise.Part{{Key: "z", Mode: mortise.Shared}, {Key: "a"}}}}
		for i, r := range asked {
			if _, waits, err := n.Ahead(brief(t), r); waits || err != nil {
				t.Errorf("%+v is found before it waits: %v", r, err)
			}
			for range 2 {
				all.Go(func() { _, _ = n.Acquire(ctx, r) })
				time.Sleep(50 * time.Millisecond)
			}
			all.Go(func() { _, _ = f.nodes[1].Acquire(ctx, r) })
			time.Sleep(50 * time.Millisecond)
			if ahead, waits, err := n.Ahead(brief(t), r); ahead != 3+3*i || !waits || err != nil {
				t.Errorf("%+v: %d are before it, %v, %v; want %d", r, ahead, waits, err, 3+3*i)
			}
		}
		for _, wrong := range []mortise.Request{{}, {Key: "t/7", MaxHold: -1}} {
			_, _, err := n.Ahead(brief(t), wrong)
			if !errors.Is(err, mortise.ErrBadRequest) && !errors.Is(err, mortise.ErrBadKey) {
				t.Errorf("%+v: %v", wrong, err)
			}
		}
		cancel()
		all.Wait()
		unlock(t, read)
		unlock(t, other)
	})
}
