package mortisetest

import (
	"context"
	"time"
)

// Pause stops node i like SIGSTOP, a long garbage collection or a closed laptop. Until Resume, the
// node's clock does not advance, and the node neither sends nor receives data. So Lock.Err of its
// locks returns nil, even after another node has been granted the locks. A resource must compare
// tokens to protect itself from such a holder. The code of the test is not stopped: its calls on
// the node behave like calls just before the pause or right after Resume.
//
//	cluster.Pause(0)
func (c *Cluster) Pause(i int) {
	c.t.Helper()
	c.setPaused("Pause", i, true)
}

// Resume continues node i after Pause. The node then reads the true time of its boot-time clock.
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
	p.machine.hide(paused) // set the clock first, because on Resume the node must read the true time before data arrives
	c.rewire()
}

// Lose makes the lease of node i expire. Every lock that the node holds is lost: Lock.Err reports
// the loss immediately, Lock.Done is closed, and the next waiter is granted the lock. The node
// continues to run without its locks. Lose advances the boot-time clock by one SessionTTL, as if
// the process had been stopped for that time. A lock with Request.LockDelay stays taken for the
// duration of the delay. The sessions of the node (mortise.Session) lose their locks too, but their
// Done may be closed later, by up to a third of their TTL.
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

// Leap advances the boot-time clock of node i by d, as if the machine had slept, at most to 200
// years since its boot. A paused node reads the new time only after Resume.
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

// Drift sets the rate of the boot-time clock of node i: 1 is the right rate. Mortise tolerates
// 1.01, which is 1% fast, and no more.
//
//	cluster.Drift(0, 1.01)
func (c *Cluster) Drift(i int, rate float64) {
	c.t.Helper()
	if !(rate >= 0) {
		c.t.Fatalf("mortisetest: Drift at %v: a boot-time clock never goes back", rate)
	}
	c.place(i).machine.run(rate)
}

// rouse makes node i read its clock now. Otherwise the node may read its clock only when its next
// renewal is due.
func (c *Cluster) rouse(i int) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Node(i).Ready(ended) // Ready reads the clock, and returns because the context has ended
}
