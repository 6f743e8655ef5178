package mortisetest

import (
	"context"
	"time"
)

// Pause stops node i as SIGSTOP, a long collection of garbage or a closed lid stop a process: until
// Resume its clock stands still for it and nothing reaches it or leaves it. So its locks look held
// to it (Lock.Err is nil) for as long as it is paused, whoever has them by then: this is the holder
// against whom a resource compares tokens. The code of the test is not stopped: what it does with
// the node meanwhile is what the node would do in the moment in which it was stopped, or in the
// first one after Resume.
//
//	cluster.Pause(0)
func (c *Cluster) Pause(i int) {
	c.t.Helper()
	c.setPaused("Pause", i, true)
}

// Resume lets node i go on after Pause. Its boot-time clock has counted the time.
//
//	cluster.Resume(0)
func (c *Cluster) Resume(i int) {
	c.t.Helper()
	c.setPaused("Resume", i, false)
	c.rouse(i)
}

func (c *Cluster) setPaused(doing string, i int, paused bool) {
	c.t.Helper()
	p := c.place(i)
	if err := c.Node(i).Err(); err != nil {
		c.t.Fatalf("mortisetest: %s: node %d does not run: %v", doing, i, err)
	}
	c.mu.Lock()
	was := p.paused
	p.paused = paused
	c.mu.Unlock()
	if was == paused {
		c.t.Fatalf("mortisetest: %s: node %d is paused: %v", doing, i, was)
	}
	p.machine.hide(paused) // the clock first, so that what has waited for Resume is met by a node that knows the time
	c.rewire()
}

// Lose lets the lease of node i run out: every lock that it holds is lost, Lock.Err says so at once
// and Lock.Done is closed, the next in the queue is granted the lock, and the node goes on with an
// empty hand. It is the boot-time clock that leaps by one SessionTTL, as if the process had been
// stopped for so long and nobody had waited. A lock with Request.LockDelay stays taken for that
// long. It is the same for the mortise.Sessions of the node, but that their Done may be closed up
// to a third of their TTL later.
//
//	cluster.Lose(0)
func (c *Cluster) Lose(i int) {
	c.t.Helper()
	p := c.place(i)
	c.mu.Lock()
	ttl := p.config.SessionTTL
	c.mu.Unlock()
	c.Leap(i, ttl)
}

// Leap moves the boot-time clock of node i forward by d at once: the machine has slept, and nobody
// has missed it. A node that is paused sees it when it is resumed.
//
//	cluster.Leap(0, time.Hour)
func (c *Cluster) Leap(i int, d time.Duration) {
	c.t.Helper()
	if d < 0 {
		c.t.Fatalf("mortisetest: Leap by %v: a boot-time clock never goes back", d)
	}
	c.place(i).machine.leap(d)
	c.rouse(i)
}

// Drift lets the boot-time clock of node i run at a rate from now on: 1 is right, 1.01 is 1% fast,
// which is as much as mortise promises to stand.
//
//	cluster.Drift(0, 1.01)
func (c *Cluster) Drift(i int, rate float64) {
	c.t.Helper()
	if !(rate >= 0) {
		c.t.Fatalf("mortisetest: Drift at %v: a boot-time clock never goes back", rate)
	}
	c.place(i).machine.run(rate)
}

// rouse lets node i look at its clock now. It would do so by itself, at the latest when its next
// renewal is due.
func (c *Cluster) rouse(i int) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Node(i).Ready(ended) // asking is enough
}
