package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
)

// The limits of a flooded group are so low that a thousand callers reach all of them.
const (
	floodEntries = 400
	floodWaiters = 200
	flooders     = 1200
	floodTime    = 6 * time.Second // three leases
)

type flood struct {
	granted, held, overloaded, full atomic.Int64
}

// TestFloodOfValidCalls runs more callers on one member than the group allows. Callers on other
// members must be granted their requests in time, and must keep their sessions and locks.
func TestFloodOfValidCalls(t *testing.T) {
	slow.UnderRace(t)
	for _, who := range slow.Sized([]string{"leader"}, []string{"leader", "follower"}) {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFleet(t)
				f.alter = func(e *outside.World) {
					e.Limits.EntriesPerSession, e.Limits.WaitersPerLock = floodEntries, floodWaiters
				}
				for i := range 3 {
					f.start(i, f.config(i, 3))
				}
				f.ready()
				flooder := f.leader()
				if who == "follower" {
					flooder = f.follower()
				}
				var sessions [3]uint64
				var kept []*mortise.Lock
				for i := range 3 {
					sessions[i] = uint64(f.nodes[i].Client.Status().Session)
					kept = append(kept, f.lock(i, fmt.Sprint("kept ", i)))
				}
				ctx, stop := context.WithTimeout(t.Context(), floodTime)
				defer stop()
				var got flood
				var calls sync.WaitGroup
				for c := range flooders {
					calls.Go(func() { got.call(ctx, t, f.nodes[flooder], c) })
				}
				for i := range 3 {
					if i != flooder {
						calls.Go(func() { f.lockOn(ctx, i) })
					}
				}
				calls.Go(func() { f.watchLimits(ctx, flooder) })
				calls.Wait()
				t.Logf("granted %d, held %d, overloaded %d, queue full %d", got.granted.Load(), got.held.Load(),
					got.overloaded.Load(), got.full.Load())
				if got.granted.Load() == 0 || got.overloaded.Load() == 0 || got.full.Load() == 0 {
					t.Error("the flood has not met every limit: the test has missed what it is for")
				}
				for i, l := range kept {
					if err := l.Err(); err != nil {
						t.Errorf("the flood cost node %d its lock: %v", i, err)
					}
					if s := uint64(f.nodes[i].Client.Status().Session); s != sessions[i] {
						t.Errorf("the flood cost node %d its session", i)
					}
					unlock(t, l)
				}
				f.nothingLeft()
			})
		})
	}
}

// call is one caller of the flood. Of every three callers, one locks a common key, one locks a
// key that no other caller uses, and one calls TryLock.
func (got *flood) call(ctx context.Context, t *testing.T, n *node, c int) {
	for round := 0; ctx.Err() == nil; round++ {
		var l *mortise.Lock
		var err error
		switch c % 3 {
		case 0:
			l, err = n.Lock(ctx, "all want it")
		case 1:
			l, err = n.Lock(ctx, fmt.Sprintf("key %d of %d", round, c))
		default:
			l, err = n.TryLock(ctx, fmt.Sprint("try ", c%50))
		}
		switch {
		case err == nil:
			got.granted.Add(1)
			time.Sleep(300 * time.Millisecond)
			if err := l.Unlock(context.Background()); err != nil {
				t.Errorf("unlock: %v", err)
			}
		case errors.Is(err, mortise.ErrHeld):
			got.held.Add(1)
		case errors.Is(err, mortise.ErrOverloaded):
			got.overloaded.Add(1)
		case errors.Is(err, mortise.ErrQueueFull):
			got.full.Add(1)
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("a caller of the flood got %v", err)
		}
		time.Sleep(time.Duration(200+c%100) * time.Millisecond)
	}
}

func (f *fleet) lockOn(ctx context.Context, i int) {
	for round := 0; ctx.Err() == nil; round++ {
		began := time.Now()
		l, err := f.nodes[i].Lock(context.Background(), fmt.Sprintf("of node %d", i))
		if err != nil {
			f.t.Errorf("node %d, which does not flood, got %v", i, err)
			return
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			f.t.Errorf("node %d waited %v for a free lock", i, took)
		}
		if err := l.Unlock(context.Background()); err != nil {
			f.t.Errorf("node %d: unlock: %v", i, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (f *fleet) watchLimits(ctx context.Context, flooder int) {
	for ctx.Err() == nil {
		for i, n := range f.nodes {
			r := n.Replica()
			if r == nil {
				f.t.Errorf("node %d no longer votes", i)
				return
			}
			// The other members hold and request at most four keys.
			if c := r.Counts(); c.Entries > floodEntries+8 || c.Waiters > floodWaiters+8 || c.Sessions > 3 {
				f.t.Errorf("node %d keeps %+v", i, c)
			}
			if s := r.Log.Status(); s.Queued > 1<<20 || s.Retired != nil {
				f.t.Errorf("node %d: %+v", i, s)
			}
		}
		if s := f.nodes[flooder].Client.Status(); s.Requests > flooders+1 {
			f.t.Errorf("the flooder keeps %d requests of %d callers", s.Requests, flooders)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
