package mortisetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
)

// tellTime is how long Await waits until the node of a holder has received the grant. A node that
// was restarted or is cut off never receives it.
const tellTime = 2 * time.Second

// Await waits until `held` requests hold key and `waiting` requests wait for it, and returns the
// queue of key. It also waits until the nodes of the holders have received the grants, if these
// nodes are reachable. So a node that loses its lease after Await loses a lock and not a waiting
// request. A lost lock that stays taken for its Request.LockDelay also counts as held.
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

// AwaitHolder waits until node i holds key, alone or with other holders, and has received the
// grant, as in Await. It returns the queue. A lost lock that stays taken for its
// Request.LockDelay does not count as held.
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

func holds(queue mortise.KeyInfo, name string) bool {
	return slices.ContainsFunc(queue.Queue, func(s mortise.Standing) bool { return holding(s, name) })
}

func holding(s mortise.Standing, name string) bool {
	return s.Holder == name && s.Token != 0 && !s.Expired
}

func (c *Cluster) await(what, key string, is func(mortise.KeyInfo) bool) mortise.KeyInfo {
	c.t.Helper()
	var queue mortise.KeyInfo
	last, since := "no leader has answered", time.Time{} // since is when the wanted state was reached
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

// This method reports whether the holders in queue have received their grants. Each of these nodes
// must have received the grants of all its holds, also of other keys. A node that loses its lease
// before it receives a grant loses a waiting request instead of a lock. Nodes that are cut off or
// paused are ignored.
func (c *Cluster) told(ctx context.Context, leader int, queue mortise.KeyInfo) bool {
	for _, i := range c.awake() {
		name := c.name(i)
		if s := c.Node(i).Status(); !holds(queue, name) || !s.Attached ||
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

func (c *Cluster) tokens(ctx context.Context, leader int, name string) (int, error) {
	found := map[mortise.Token]bool{} // a hold of several keys is in the queue of each key
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

func (c *Cluster) name(i int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places[i].config.Name
}
