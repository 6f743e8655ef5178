package whole

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// bounds are the longest times of calls without faults, behind the time that messages need.
type bound struct {
	name string
	most time.Duration
}

var (
	quiet   = bound{"Lock in quiet", 40 * time.Millisecond}
	leaving = bound{"Lock beside a leave", 400 * time.Millisecond}
)

// refused is added to a bound if places of this kind refuse work at times. A call may meet several
// refusals one after the other.
var refused = [...]time.Duration{
	refusedFrame:    350 * time.Millisecond,
	refusedRaft:     600 * time.Millisecond,
	refusedProposal: 350 * time.Millisecond,
	refusedStep:     600 * time.Millisecond,
	refusedReplies:  600 * time.Millisecond,
	refusedCommands: 600 * time.Millisecond,
}

// trips is a bound for the messages of one call, in one-way latencies.
const trips = 12

// calmly has no faults: callers of every kind lock keys of their own, and instances leave and come
// back. Each call has a bound.
func (r *run) calmly() {
	if r.calm == 0 {
		return
	}
	random := rand.New(rand.NewPCG(r.seed, 3))
	done := make(chan struct{})
	var mu sync.Mutex
	state := quiet
	var group sync.WaitGroup
	for n := range 2*r.plan.nodes + min(1, r.guests) {
		c := r.newCaller(20+n, n == 2*r.plan.nodes)
		group.Go(func() {
			for {
				select {
				case <-done:
					c.end()
					return
				case <-time.After(time.Duration(1+c.random.IntN(60)) * time.Millisecond):
				}
				c.probe(fmt.Sprint("probe ", n), func() bound { mu.Lock(); defer mu.Unlock(); return state })
			}
		})
	}
	time.Sleep(r.calm / 4)
	if r.plan.nodes > 1 {
		i := random.IntN(r.plan.nodes)
		if l := r.leader(); l >= 0 && random.IntN(2) == 0 {
			i = l
		}
		mu.Lock()
		state = leaving
		mu.Unlock()
		r.leave(i)
		time.Sleep(time.Second)
		r.revive(i, false)
		time.Sleep(r.calm / 2)
		mu.Lock()
		state = quiet
		mu.Unlock()
		time.Sleep(r.calm / 4)
	}
	close(done)
	group.Wait()
	r.ready(10*time.Second, "at the end")
}

// probe locks a key of its own, and compares the time with the bound before and after.
func (c *caller) probe(key string, state func() bound) {
	d := c.enter()
	if d == nil {
		return
	}
	b := state()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	h, err := d.acquire(ctx, mortise.Request{Key: key})
	took := time.Since(began)
	if after := state(); after.most > b.most {
		b = after
	}
	if err != nil {
		if d.node == nil || c.node(c.home) == d.node {
			c.bug("%s cannot lock %s: %v", c.name, key, err)
		}
		return
	}
	c.count("probes")
	c.compare(b, took, fmt.Sprintf("%s %s", c.name, key))
	began = time.Now()
	err = h.Unlock(ctx)
	if d.node == nil || c.node(c.home) == d.node {
		c.compare(bound{"Un" + b.name, b.most}, time.Since(began), fmt.Sprintf("%s %s: %v", c.name, key, err))
	}
}

func (c *caller) compare(b bound, took time.Duration, what string) {
	kinds, more := 0, time.Duration(0)
	for kind, rate := range c.refusals {
		if rate != 0 {
			kinds, more = kinds+1, more+refused[kind]
		}
	}
	if kinds > 0 {
		b = bound{b.name + " with refusals", b.most + more}
	}
	c.mu.Lock()
	c.slowest[b.name] = max(c.slowest[b.name], took)
	c.mu.Unlock()
	if most := b.most + trips*c.latency; took > most {
		c.bug("%s took %v (%s), more than %v", b.name, took, what, most)
	}
}
