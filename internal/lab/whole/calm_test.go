package whole

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
)

// trial is one fault beside calls that begin together while the group is at rest.
type trial struct {
	name string
	// The longest time of a call: a fixed part, and a number of one-way latencies.
	most  time.Duration
	trips int
	// refuses is one of the places that refuse work once or several times, or none.
	refuses int
	// beside happens while the calls wait. Nil means nothing.
	beside  func(*calm)
	follows bool // another call follows while the calls wait
	silent  bool // a client may lose two answers: it asks again after TTL/6, and then after TTL/3
	elects  bool // the group may have no leader for a while afterwards
}

const none = -1

// trials has one row for each place that may refuse work, and the faults whose repair must not wait
// for a timeout of another purpose.
var trials = []trial{
	{name: "nothing", most: 2 * time.Millisecond, trips: 10, refuses: none},
	{name: "refused frame", most: 20 * time.Millisecond, trips: 16, refuses: refusedFrame},
	{name: "refused raft", most: 250 * time.Millisecond, trips: 12, refuses: refusedRaft},
	{name: "refused proposal", most: 160 * time.Millisecond, trips: 12, refuses: refusedProposal},
	{name: "refused step", most: 250 * time.Millisecond, trips: 12, refuses: refusedStep},
	{name: "refused input of a client", most: 20 * time.Millisecond, trips: 12, refuses: refusedInput, silent: true},
	{name: "refused commands", most: 600 * time.Millisecond, trips: 12, refuses: refusedCommands},
	{name: "refused replies", most: 350 * time.Millisecond, trips: 12, refuses: refusedReplies},
	{name: "refused frame of raft", most: 250 * time.Millisecond, trips: 12, refuses: refusedMessages},
	{name: "refused entries", most: 250 * time.Millisecond, trips: 12, refuses: refusedMessages, follows: true},
	{name: "reset", most: 100 * time.Millisecond, trips: 24, refuses: none, beside: (*calm).reset},
	// All voters lose the leader at once, and their votes may be split.
	{name: "reset of the leader", most: 3 * time.Second, trips: 24, refuses: none, beside: (*calm).resetLeader,
		elects: true},
}

// calm is the part of a run in which each call has a bound.
type calm struct {
	*run
	random *rand.Rand
	caller *caller
	seats  []*seat
	keys   int
	number int // of the trial
}

// seat is a session in which calls are made.
type seat struct {
	name  string
	of    int // the instance; none for a guest
	doors *doors
	close func(context.Context) error // nil for the session of an instance
}

// calmly makes trials, at first with all instances, and then without one of them.
func (r *run) calmly() {
	if r.trials == 0 {
		return
	}
	c := &calm{run: r, random: rand.New(rand.NewPCG(r.seed, 3))}
	if refuseNext != nil {
		refuseNext(0, 0, 0)
	}
	c.open()
	c.settle()
	c.some(r.trials)
	if r.plan.nodes > 2 {
		i := c.random.IntN(r.plan.nodes)
		c.lose(i)
		c.some(r.trials / 2)
		r.revive(i, false)
	}
	c.shut()
	r.ready(10*time.Second, "at the end")
}

const longestOwnTTL = 2 * time.Second

// open opens a session of NewSession on each instance, and one of a guest.
func (c *calm) open() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, i := range c.running() {
		n := c.node(i)
		c.seats = append(c.seats, &seat{name: fmt.Sprintf("node %d", i), of: i, doors: doorsOf[*mortise.Lock](n, n)})
		s, err := n.NewSession(ctx, longestOwnTTL-time.Duration(c.random.IntN(1000))*time.Millisecond)
		if err != nil {
			c.bug("node %d opens no session: %v", i, err)
			continue
		}
		c.seats = append(c.seats, &seat{name: fmt.Sprintf("session of node %d", i), of: i,
			doors: doorsOf[*mortise.Lock](s, n), close: s.Close})
	}
	if c.guests > 0 {
		c.caller = c.newCaller(20, true)
		if d := c.caller.enter(); d != nil {
			c.seats = append(c.seats, &seat{name: "guest", of: none, doors: d})
		}
	}
}

func (c *calm) shut() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, s := range c.seats {
		if s.close == nil {
			continue
		}
		if err := s.close(ctx); err != nil {
			c.bug("%s does not close: %v", s.name, err)
		}
	}
	if c.caller != nil {
		c.caller.end()
	}
}

func (c *calm) some(n int) {
	for range n {
		c.number++
		c.random = rand.New(rand.NewPCG(c.seed, uint64(2000+c.number))) // so that a trial does not depend on others
		t := &trials[0]
		if c.random.IntN(2) == 0 {
			t = &trials[c.random.IntN(len(trials))]
		}
		if !c.has(Part{Kind: ATrial, N: c.number}, "calls in the calm, beside "+t.name) {
			continue
		}
		c.try(t)
		if t.beside != nil {
			time.Sleep(time.Second) // a link that ends sooner is not dialed again at once
		}
		if t.elects {
			c.settle()
		} else {
			c.rest()
		}
	}
}

// try makes several calls at one instant, in one to three sessions.
func (c *calm) try(t *trial) {
	if t.refuses != none && refuseNext == nil {
		return
	}
	if t.follows {
		c.follow(t)
		return
	}
	if t.refuses != none {
		refuseNext(t.refuses, uint32(c.random.IntN(4)), uint32(1+c.random.IntN(2)))
	}
	var group sync.WaitGroup
	for range 1 + c.random.IntN(3) {
		s := c.seats[c.random.IntN(len(c.seats))]
		c.keys++
		key := fmt.Sprint("calm/", c.keys)
		for n := range 1 + c.random.IntN(3) {
			kind := c.random.IntN(6)
			group.Go(func() { c.one(t, s, fmt.Sprint(key, "/", n), kind) })
		}
	}
	if t.beside != nil {
		t.beside(c)
	}
	group.Wait()
	if t.refuses != none {
		refuseNext(t.refuses, 0, 0)
	}
}

// follow makes a call whose entries are refused, and another while it waits. Since the leader is
// told of the refusal, it sends the refused entries with those of the second call, and the second
// call is as fast as without a fault: 0.1 ms and five latencies, or three on the leader. It is
// slower while an entry of another purpose is in flight, too, but not three times in a row.
func (c *calm) follow(t *trial) {
	first, second := c.seats[c.random.IntN(len(c.seats))], c.seats[c.random.IntN(len(c.seats))]
	if second.of == none {
		return // the way of a guest may be longer
	}
	var took []time.Duration
	for range 3 {
		trips := time.Duration(5)
		if second.of == c.leader() {
			trips = 3
		}
		d := c.next(t, first, second)
		if d <= 100*time.Microsecond+trips*c.latency {
			return
		}
		took = append(took, d)
		c.rest()
	}
	c.bug("a call after refused entries took %v (%s), with latencies of %v", took, second.name, c.latency)
}

// next returns the time of the second call.
func (c *calm) next(t *trial, first, second *seat) time.Duration {
	c.keys++
	key := fmt.Sprint("calm/", c.keys)
	var group sync.WaitGroup
	// The next messages of raft are one for each follower, with the entries of the first call. Raft
	// learns of a second refusal to one follower only after a heartbeat.
	refuseNext(t.refuses, 0, uint32(c.followers()))
	group.Go(func() { c.one(t, first, key, 3) })
	time.Sleep(2*c.latency + time.Duration(c.random.Int64N(int64(c.latency+1))))
	refuseNext(t.refuses, 0, 0)
	began := time.Now()
	h, err := second.doors.acquire(context.Background(), mortise.Request{Key: key + "/next"})
	took := time.Since(began)
	if err == nil {
		err = h.UnlockSoon()
	}
	if err != nil {
		c.bug("a call after refused entries: %s: %v", second.name, err)
	}
	group.Wait()
	return took
}

// followers returns how many voters that run follow the leader.
func (c *calm) followers() (n int) {
	lead := c.leader()
	if lead < 0 {
		return 0
	}
	for _, v := range c.node(lead).Status().Voters {
		for _, i := range c.running() {
			if v.Votes && i != lead && v.Name == fmt.Sprintf("node-%d", i) {
				n++
			}
		}
	}
	return n
}

// one makes one call, of a kind, and compares its time with the bound.
func (c *calm) one(t *trial, s *seat, key string, kind int) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c.count("probes")
	began := time.Now()
	q := mortise.Request{Key: key}
	switch kind {
	case 0:
		if s.doors.node != nil {
			err := s.doors.node.Ready(ctx)
			c.compare(t, s, "Ready", began, err)
			return
		}
	case 1:
		q.Mode = mortise.Shared
	}
	h, err := s.doors.acquire(ctx, q)
	c.compare(t, s, "Lock", began, err)
	if err != nil {
		return
	}
	if kind == 2 {
		_ = h.UnlockSoon()
		return
	}
	began = time.Now()
	err = h.Unlock(ctx)
	c.compare(t, s, "Unlock", began, err)
}

func (c *calm) compare(t *trial, s *seat, what string, began time.Time, err error) {
	took := time.Since(began)
	beyond, most := took-time.Duration(t.trips)*c.latency, t.most
	if t.silent {
		most += max(c.ttl, longestOwnTTL) / 2
	}
	c.mu.Lock()
	name := t.name + ": " + what
	c.slowest[name] = max(c.slowest[name], beyond)
	c.mu.Unlock()
	switch {
	case err != nil:
		c.bug("%s beside %s: %s: %v", what, t.name, s.name, err)
	case beyond > most:
		c.bug("%s beside %s took %v (%s), which is more than %v and %d latencies of %v", what, t.name, took, s.name, most,
			t.trips, c.latency)
	}
}

// soon waits for a part of the time of a call.
func (c *calm) soon() { time.Sleep(time.Duration(c.random.Int64N(int64(4*c.latency + 2)))) }

// reset ends all connections of one instance that does not lead.
func (c *calm) reset() {
	var all []int
	for _, i := range c.running() {
		if i != c.leader() {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return
	}
	i := all[c.random.IntN(len(all))]
	c.soon()
	c.say("reset of node %d", i)
	c.net.Reset(host(i))
}

func (c *calm) resetLeader() {
	c.soon()
	i := c.leader()
	c.say("reset of node %d, which leads", i)
	c.net.Reset(host(max(0, i)))
}

// rest waits until nothing of the last trial is left.
func (c *calm) rest() {
	time.Sleep(300*time.Millisecond + time.Duration(c.random.Int64N(int64(100*time.Millisecond))))
}

// settle waits until each session has a lock again.
func (c *calm) settle() {
	c.rest()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, s := range c.seats {
		h, err := s.doors.acquire(ctx, mortise.Request{Key: "settle"})
		if err == nil {
			err = h.Unlock(ctx)
		}
		if err != nil {
			c.bug("%s has no lock 10 s after a fault: %v", s.name, err)
		}
	}
	c.rest()
}

// lose ends an instance. The others are given time to replace it.
func (c *calm) lose(i int) {
	var left []*seat
	for _, s := range c.seats {
		if s.of != i {
			left = append(left, s)
		}
	}
	c.seats = left
	c.kill(i)
	time.Sleep(3 * time.Second)
	c.settle()
}
