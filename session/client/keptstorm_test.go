package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// lockLog checks that at most one valid hold of a key exists, and that tokens rise.
type lockLog struct {
	t    *testing.T
	mu   sync.Mutex
	last map[string]lockfsm.Token
	held map[string]*Hold
}

func (l *lockLog) got(h *Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.held[h.Key()]; before != nil && before.Err() == nil && h.Err() == nil {
		l.t.Errorf("%q has two holders, with tokens %d and %d", h.Key(), before.Token(), h.Token())
	}
	if h.Err() == nil {
		if h.Token() <= l.last[h.Key()] {
			l.t.Errorf("%q: token %d after %d", h.Key(), h.Token(), l.last[h.Key()])
		}
		l.last[h.Key()], l.held[h.Key()] = h.Token(), h
	}
}

// TestKeptStorm runs sticky and ordinary calls of three clients while leaders change and clients
// are cut off and rebound.
func TestKeptStorm(t *testing.T) {
	slow.UnderRace(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { keptStorm(t, seed) })
		})
	}
}

// TestKeptAgainAfterARecall runs 64 callers without a pause, and one lock of another client. One
// second later the callers get passes again.
func TestKeptAgainAfterARecall(t *testing.T) {
	keeping(t, func(w *world) {
		var all sync.WaitGroup
		var calls atomic.Int64
		ends := time.Now().Add(4 * time.Second)
		for range 64 {
			all.Go(func() {
				for time.Now().Before(ends) {
					h := w.sticky(kept100, "x")
					time.Sleep(time.Millisecond)
					w.unlock(h)
					calls.Add(1)
				}
			})
		}
		time.Sleep(time.Second)
		w.unlock(w.sticky(kept101, "x"))
		time.Sleep(time.Second)
		before, frames := calls.Load(), w.sends()
		all.Wait()
		if n := calls.Load() - before; frames.Load() > n/20 {
			w.t.Errorf("%d frames for %d calls", frames.Load(), n)
		}
	})
}

func keptStorm(t *testing.T, seed uint64) {
	w := newWorld(t, 3, nodeidtest.ID(1), nodeidtest.ID(2))
	defer w.close()
	w.elect(nodeidtest.ID(1))
	log := &lockLog{t: t, last: map[string]lockfsm.Token{}, held: map[string]*Hold{}}
	var all sync.WaitGroup
	ends := time.Now().Add(20 * time.Second)
	for i := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, i))
		all.Go(func() {
			for time.Now().Before(ends) {
				keptCall(w, log, w.clients[nodeidtest.ID(100+i%3)], rng)
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	for time.Now().Before(ends) {
		time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
		one := nodeidtest.ID(100 + rng.Uint64N(3))
		switch rng.IntN(5) {
		case 0:
			w.elect(nodeidtest.ID(rng.Uint64N(3)))
		case 1, 2:
			w.isolate(one, rng.IntN(2) == 0)
		case 3:
			w.clients[one].Rebind([]byte{1}, []nodeid.Endpoint{{ID: nodeidtest.ID(1)}, {ID: nodeidtest.ID(2)}})
		}
	}
	for i := range uint64(3) {
		w.isolate(nodeidtest.ID(100+i), false)
	}
	w.elect(nodeidtest.ID(2))
	all.Wait()
	time.Sleep(2 * worldTTL)
	w.empty()
	for _, c := range w.clients {
		c.keepsNothing(t)
	}
}

func keptCall(w *world, log *lockLog, c *Client, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rng.IntN(3000))*time.Millisecond)
	defer cancel()
	h := &Hold{}
	p := passOf(fmt.Sprint(rng.IntN(3)))
	p.Try = rng.IntN(6) == 0
	var err error
	if rng.IntN(8) > 0 {
		err = c.AcquireKept(ctx, h, &p)
	} else {
		err = c.AcquireInto(ctx, h, p.Request())
	}
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrHeld) && err != ErrNoLeader && err != ErrKept &&
			err != ErrInGrace {
			w.t.Error(err)
		}
		time.Sleep(time.Millisecond)
		return
	}
	log.got(h)
	if rng.IntN(3) == 0 {
		time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
	}
	if rng.IntN(20) == 0 {
		if under, err := w.stickUnder(ctx, c, h); err == nil {
			log.got(under)
			_ = under.Release(context.Background())
		}
	}
	if err := h.ReleaseSoon(); err != nil && !errors.Is(err, ErrLost) {
		w.t.Error(err)
	}
	time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
}

func (w *world) stickUnder(ctx context.Context, c *Client, h *Hold) (*Hold, error) {
	under := &Hold{}
	return under, c.AcquireInto(ctx, under, &Request{Key: "under", Terms: &Terms{Under: h.Request()}})
}
