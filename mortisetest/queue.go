package mortisetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
)

// tellTime bounds the wait until a holder's node has learned of its hold. That takes a moment; a
// node that was restarted or is cut off never learns of it.
const tellTime = 2 * time.Second

// Await waits until exactly held requests hold key and waiting requests wait for it, and returns
// its queue. By then the holders' nodes have learned of their holds, if they are reachable: a later
// loss is the loss of a lock. A hold that only Request.LockDelay keeps counts as one.
//
//	go second(cluster.Node(1))
//	cluster.Await("orders/42", 1, 1) // the second is in the queue now
//	cluster.Await("orders/42", 0, 0) // not held, and no waiters
func (c *Cluster) Await(key string, held, waiting int) mortise.KeyInfo {
	c.t.Helper()
	return c.await(fmt.Sprintf("%q has %d holders and %d waiters", key, held, waiting), key,
		func(k mortise.KeyInfo) bool {
			return k.Held == held && k.Waiting == waiting
		})
}

// AwaitHolder waits until node i holds key, alone or with others, and has learned of it, as for
// Await. It returns the queue. A hold that only Request.LockDelay keeps has no holder.
//
//	cluster.AwaitHolder("orders/42", 1)
func (c *Cluster) AwaitHolder(key string, i int) mortise.KeyInfo {
	c.t.Helper()
	c.place(i)
	name := c.name(i)
	return c.await(fmt.Sprintf("node %d holds %q", i, key), key, func(k mortise.KeyInfo) bool {
		return holds(k, name)
	})
}

// holds reports whether a node holds the key of a queue.
func holds(queue mortise.KeyInfo, name string) bool {
	return slices.ContainsFunc(queue.Queue, func(s mortise.Standing) bool { return holding(s, name) })
}

func holding(s mortise.Standing, name string) bool {
	return s.Holder == name && s.Token != 0 && !s.Expired
}

// await asks the present leader until the queue of key is as wanted.
func (c *Cluster) await(what, key string, is func(mortise.KeyInfo) bool) mortise.KeyInfo {
	c.t.Helper()
	var queue mortise.KeyInfo
	last, since := "no leader has answered", time.Time{} // since is when the queue became as wanted
	c.until(func() string { return fmt.Sprintf("%s (last seen: %s)", what, last) }, func() bool {
		leader := c.leader()
		if leader < 0 {
			return false
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		found, err := c.Node(leader).Peek(ctx, key)
		if err != nil {
			return false
		}
		queue, last = found, fmt.Sprintf("held by %d, %d waiting", found.Held, found.Waiting)
		switch {
		case !is(found):
			since = time.Time{}
			return false
		case since.IsZero():
			since = time.Now()
		}
		return time.Since(since) > tellTime || c.told(ctx, leader, found)
	})
	return queue
}

// told reports whether every node that holds the key of a queue knows as many of its holds as the
// group does. A grant takes a moment to arrive; a lease that is lost in between would hit a waiting
// request. A node that is cut off or paused is ignored.
func (c *Cluster) told(ctx context.Context, leader int, queue mortise.KeyInfo) bool {
	for _, i := range c.awake() {
		name := c.name(i)
		if s := c.Node(i).Status(); !holds(queue, name) || s.Session != mortise.SessionAttached ||
			s.Lease == mortise.LeaseLost {
			continue
		}
		tokens, err := c.tokens(ctx, leader, name)
		if err != nil || c.Node(i).Status().Held < tokens {
			return false
		}
	}
	return true
}

// tokens counts the group's holds of a node.
func (c *Cluster) tokens(ctx context.Context, leader int, name string) (int, error) {
	found := map[mortise.Token]bool{} // a hold of several keys stands in the queue of each
	for key, err := range c.Node(leader).List(ctx, "") {
		if err == nil && key.Held > len(key.Queue) { // List returns only the first holders
			key, err = c.Node(leader).Peek(ctx, key.Key)
		}
		if err != nil {
			return 0, err
		}
		for _, s := range key.Queue {
			if holding(s, name) {
				found[s.Token] = true
			}
		}
	}
	return len(found), nil
}

// name returns the Name of node i.
func (c *Cluster) name(i int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places[i].config.Name
}
