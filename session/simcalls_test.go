package session_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

func (s *sim) caller(n *simNode) {
	c := &simCall{node: n, key: fmt.Sprint("key", s.rand.IntN(s.config.keys)), begun: -1}
	c.req = client.Request{Key: c.key, Try: s.chance(0.2), Caller: c}
	if c.req.Try {
		s.stats.tries++
	}
	n.clientInput(func(now clock.Time) { n.client.Acquire(now, &c.req) })
	if s.chance(0.3) {
		s.after(s.between(0, s.config.ttl), c.cancel)
	}
}

func (c *simCall) next() {
	s := c.node.s
	s.after(s.between(0, 50*time.Millisecond), func() {
		if s.stopped() {
			c.node.live--
			return
		}
		s.caller(c.node)
	})
}

func (s *sim) stopped() bool { return s.now > simStop }

const simStop = 45 * time.Second

func (c *simCall) cancel() {
	if c.left || c.begun >= 0 || c.settled {
		return
	}
	c.left = true
	c.node.s.stats.cancelled++
	c.node.clientInput(func(now clock.Time) { c.node.client.Cancel(now, &c.req) })
	c.next()
}

// outcomes carries out the output of a client core, in the same order as the shell.
func (n *simNode) outcomes(out client.Output) {
	for _, o := range out.Outcomes {
		if o.Kind == client.OutcomeLost {
			n.s.stats.lost++
			o.Request.Caller.(*simCall).end(n.deadline)
		}
	}
	n.mustStayLost()
	n.deadline = out.Deadline
	for _, o := range out.Outcomes {
		c := o.Request.Caller.(*simCall)
		switch o.Kind {
		case client.OutcomeGranted:
			c.granted(o.Token)
		case client.OutcomeFailed:
			c.failed(o.Err)
		case client.OutcomeReleased:
			n.s.stats.releases++
		}
	}
}

func (c *simCall) failed(err error) {
	s := c.node.s
	s.stats.failed++
	c.settled = true
	var held *client.HeldError
	if errors.As(err, &held) {
		s.stats.held++
		if len(held.Record) == 0 || held.Token == 0 {
			s.fail("a HeldError without its holder: %+v", held)
		}
	}
	if c.left {
		return
	}
	c.next()
}

// granted checks that no other caller now believes that it holds the lock, by its own clock and
// deadline.
func (c *simCall) granted(token lockfsm.Token) {
	s := c.node.s
	if c.left || c.settled {
		return // the caller has already posted a cancel, so it does not use the lock
	}
	s.stats.granted++
	c.begun, c.token = s.now, token
	if c.node.s.now >= c.node.global(c.node.deadline) {
		// The turn that granted the lock took so long that the deadline has passed when the caller
		// reads the clock.
		c.ended = true
	}
	for _, other := range s.believers[c.key] {
		if until := other.node.global(other.node.deadline); !other.ended && s.now < until {
			s.fail("%s: node %d holds token %d until %v while node %d is granted token %d", c.key, other.node.id,
				other.token, until, c.node.id, token)
		}
	}
	if token <= s.tokens[c.key] {
		s.fail("%s: token %d after %d", c.key, token, s.tokens[c.key])
	}
	s.tokens[c.key] = token
	s.believers[c.key] = append(s.believers[c.key], c)
	hold := s.between(0, 30*time.Millisecond)
	if s.chance(s.config.long) {
		hold = s.between(0, 3*s.config.ttl)
	}
	s.after(hold, c.release)
}

func (c *simCall) release() {
	if c.settled {
		return
	}
	c.settled = true
	c.stop()
	c.node.clientInput(func(now clock.Time) { c.node.client.Release(now, &c.req) })
	c.next()
}

// stop ends the time in which the caller believes that it holds the lock.
func (c *simCall) stop() {
	c.ended = true
	s := c.node.s
	s.believers[c.key] = slices.DeleteFunc(s.believers[c.key], func(o *simCall) bool { return o == c })
}

// end handles the loss of a lock. The caller stopped using the lock at the deadline, even if the
// report was late.
func (c *simCall) end(clock.Time) {
	if c.begun < 0 {
		c.settled = true // the lock was lost in the turn that granted it
		c.next()
		return
	}
	if c.settled {
		return
	}
	c.settled = true
	c.stop()
	c.next()
}

func (s *sim) start() {
	s.after(0, func() { s.elect(0, 0) })
	for _, n := range s.nodes {
		for range s.config.callers {
			n.live++
			s.after(s.between(0, 200*time.Millisecond), func() { s.caller(n) })
		}
	}
}

func (s *sim) heal() {
	s.faults, s.hungTo = false, 0
	for _, c := range s.conns {
		c.stuckTo, c.silence = 0, [2]time.Duration{}
	}
	for _, n := range s.nodes {
		n.deafUntil = 0 // a paused node continues by itself
	}
	s.elect(s.rand.IntN(s.config.voters), 0)
}

func runSim(t *testing.T, seed uint64, config simConfig) *sim {
	s := newSim(t, seed, config)
	s.start()
	s.after(0, s.audit)
	s.runUntil(3 * time.Second)
	if config.faults {
		s.faults = true
		s.after(0, s.nemesis)
	}
	s.runUntil(35 * time.Second)
	s.heal()
	s.runUntil(simStop)
	// Now every waiter is granted its lock, and no state remains at the end.
	s.runUntil(simStop + 30*config.ttl) // enough for the longest queue if each lock is held for the longest time
	for _, n := range s.nodes {
		st := n.client.Status(n.clock())
		if n.live != 0 || st.Requests != 0 || st.Phase != client.Attached {
			s.fail("client %d is left with %d callers, %+v", n.id, n.live, st)
		}
		if n.keeper == nil {
			continue
		}
		c := n.machine.Counts()
		if c.Entries != 0 || c.Waiters != 0 || c.Locks != 0 || c.Sessions != len(s.nodes) {
			s.fail("the group is left with %+v", c)
		}
		k := n.keeper.Status()
		if k.Leading && (k.Sessions != len(s.nodes) || k.Attachments != len(s.nodes) || k.Expiring+k.Opens != 0) {
			s.fail("the leader is left with %+v", k)
		}
		if !k.Leading && (k.Sessions+k.Attachments+k.Peers+k.Opens+k.Renewals != 0) {
			s.fail("follower %d is left with %+v", n.id, k)
		}
	}
	return s
}

// TestSimulation runs 40 seeds. MORTISE_SEEDS=5000 runs 5000 seeds. MORTISE_SEED=17 runs only seed
// 17 and prints its counts.
func TestSimulation(t *testing.T) {
	slow.UnderRace(t)
	t.Parallel()
	first, last := uint64(0), uint64(40)
	if n, err := strconv.ParseUint(os.Getenv("MORTISE_SEEDS"), 10, 64); err == nil {
		last = n
	}
	if n, err := strconv.ParseUint(os.Getenv("MORTISE_SEED"), 10, 64); err == nil {
		first, last = n, n+1
	}
	var total simStats
	for seed := first; seed < last; seed++ {
		config := simConfig{voters: 3, plain: 3, callers: 4, keys: 1 + int(seed%4), ttl: 2 * time.Second,
			faults: true, drift: 0.009, long: 0.1}
		if seed%3 == 1 {
			config.duplicates = 0.01
		}
		if seed%3 == 2 {
			// Clients that send no requests must detect a deposed leader by their renewals alone.
			config.callers, config.plain, config.long = 1, 4, 0.6
		}
		if seed%5 == 4 {
			config.far = true
		}
		if seed%4 == 2 {
			config.grace = 700 * time.Millisecond
		}
		s := runSim(t, seed, config)
		total.add(s.stats)
		if last == first+1 {
			t.Logf("seed %d: %+v", seed, s.stats)
		}
	}
	t.Logf("%d seeds: %+v", last-first, total)
	if last > first+1 && (total.lost == 0 || total.expired == 0 || total.cancelled == 0 || total.held == 0) {
		t.Fatalf("the simulation did not cover what it is meant to test: %+v", total)
	}
}

func (s *simStats) add(o simStats) {
	s.granted += o.granted
	s.failed += o.failed
	s.lost += o.lost
	s.cancelled += o.cancelled
	s.tries += o.tries
	s.held += o.held
	s.changes += o.changes
	s.expired += o.expired
	s.releases += o.releases
}
