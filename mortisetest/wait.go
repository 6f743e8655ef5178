package mortisetest

import (
	"context"
	"slices"
	"time"
)

// Ready waits until the given nodes are ready (mortise.Node.Ready). Without arguments it waits for
// all nodes that are running and not paused.
//
//	cluster.Start(1)
//	cluster.Ready()
func (c *Cluster) Ready(nodes ...int) {
	c.t.Helper()
	if len(nodes) == 0 {
		nodes = c.awake()
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), c.options.Patience)
	defer cancel()
	for _, i := range nodes {
		if err := c.Node(i).Ready(ctx); err != nil {
			c.t.Fatalf("mortisetest: node %d is not ready: %v\n%v", i, err, c.Node(i).Status())
		}
	}
}

// Leader waits until a node leads the group, and returns its index. It ignores a former leader that
// is cut off or paused.
//
//	cluster.Kill(cluster.Leader())
func (c *Cluster) Leader() int {
	c.t.Helper()
	leader := -1
	c.Until("a node leads the group", func() bool {
		leader = c.leader()
		return leader >= 0
	})
	return leader
}

// Follower waits until a node leads the group. It returns the index of the first node after the
// leader, in cyclic order, that is running and not paused.
//
//	holder := cluster.Follower() // killing it causes no election
func (c *Cluster) Follower() int {
	c.t.Helper()
	leader, awake := c.Leader(), c.awake()
	for step := range c.Len() - 1 {
		if i := (leader + 1 + step) % c.Len(); slices.Contains(awake, i) {
			return i
		}
	}
	c.t.Fatal("mortisetest: no node except the leader is running")
	return -1
}

// leader returns the index of the leader, or -1 if there is no leader. The leader is the node with
// the highest term among the nodes that report that they lead. It must also answer a query that
// needs the confirmation of a majority.
func (c *Cluster) leader() int {
	leader, term := -1, uint64(0)
	for _, i := range c.awake() {
		if s := c.Node(i).Status(); s.Leading && s.Term > term {
			leader, term = i, s.Term
		}
	}
	if leader < 0 {
		return -1
	}
	// This is not c.t.Context(), because leader is also called at the end of the test, after that
	// context has ended.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := c.Node(leader).Check(ctx, "mortisetest", 1); err != nil {
		return -1
	}
	if s := c.Node(leader).Status(); !s.Leading || s.Term != term {
		return -1
	}
	return leader
}

// Until calls the function `is` repeatedly, until it returns true. The first pause between two
// calls is a millisecond, and later pauses are up to 50 ms. If the function does not return true
// within Patience, the test fails with the text in what.
//
//	cluster.Until("the worker has stopped", func() bool { return worker.stopped.Load() })
func (c *Cluster) Until(what string, is func() bool) {
	c.t.Helper()
	c.until(func() string { return what }, is)
}

func (c *Cluster) until(what func() string, is func() bool) {
	c.t.Helper()
	const longest = 50 * time.Millisecond
	began := time.Now()
	for step := time.Millisecond; !is(); step = min(2*step, longest) {
		if time.Since(began) > c.options.Patience {
			c.t.Fatalf("mortisetest: waited %v in vain: %s", c.options.Patience, what())
		}
		time.Sleep(step)
	}
}

func (c *Cluster) awake() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []int
	for i, p := range c.places {
		if p.node != nil && p.node.Err() == nil && !p.paused {
			found = append(found, i)
		}
	}
	return found
}
