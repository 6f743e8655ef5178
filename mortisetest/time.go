package mortisetest

import (
	"context"
	"time"
)

// Pause stops node i like SIGSTOP, a long garbage collection or a closed lid. Until Resume, the
// node's clock stands still and nothing reaches it or leaves it. So its locks look held to it
// (Lock.Err is nil) while it is paused, even if another node holds them by then. To protect from
// such a holder, a resource compares tokens. The code of the test is not stopped: its calls on the
// node behave as at the moment of the pause, or as right after Resume.
//
//	cluster.Pause(0)
func (c *Cluster) Pause(i int) {
	c.t.Helper()
	c.setPaused("Pause", i, true)
}

// Resume continues node i after Pause. Its boot-time clock has advanced meanwhile.
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
		c.t.Fatalf("mortisetest: %s: node %d is not running: %v", doing, i, err)
	}
	c.mu.Lock()
	was := p.paused
	p.paused = paused
	c.mu.Unlock()
	if was == paused {
		c.t.Fatalf("mortisetest: %s: node %d: paused is already %v", doing, i, was)
	}
	p.machine.hide(paused) // first the clock: on Resume the node must know the time before data arrives
	c.rewire()
}

// Lose makes the lease of node i expire. Every lock that it holds is lost: Lock.Err reports it at
// once, Lock.Done is closed, and the next in the queue is granted the lock. The node goes on
// without its locks. Lose advances the boot-time clock by one SessionTTL, as if the process had
// been stopped for that time. A lock with Request.LockDelay stays taken for that delay. The
// mortise.Sessions of the node lose their locks too, but their Done may be closed up to a third of
// their TTL later.
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

// Leap advances the boot-time clock of node i by d at once, as if the machine had slept. A paused
// node sees it after Resume.
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

// Drift sets the rate of the boot-time clock of node i: 1 is right, 1.01 is 1% fast, the most that
// mortise tolerates.
//
//	cluster.Drift(0, 1.01)
func (c *Cluster) Drift(i int, rate float64) {
	c.t.Helper()
	if !(rate >= 0) {
		c.t.Fatalf("mortisetest: Drift at %v: a boot-time clock never goes back", rate)
	}
	c.place(i).machine.run(rate)
}

// rouse makes node i read its clock now. Otherwise it would do so at the latest when its next
// renewal is due.
func (c *Cluster) rouse(i int) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Node(i).Ready(ended) // the call alone makes it read the clock
}
