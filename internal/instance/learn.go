package instance

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// This file lets an instance that does not gossip learn the names of its leader and the other
// replicas, for Status and hooks. It asks a leader whose name it does not know after a random
// delay: after a change of leader a thousand instances would ask at once.

const (
	learnWithin = 10 * time.Second // bounds the random delay before each attempt
	learnTries  = 3
)

// learnNames asks the leader after a delay, unless its name is known by then.
func (n *Instance) learnNames() {
	if n.knowsLeader() || !n.learning.CompareAndSwap(false, true) {
		return
	}
	started := n.spawn(func() {
		defer n.learning.Store(false)
		for range learnTries {
			if !n.rest(n.upTo(learnWithin)) || n.knowsLeader() || n.askNames() {
				return
			}
		}
	})
	if !started {
		n.learning.Store(false)
	}
}

// knowsLeader reports whether there is no leader, or its name is known.
func (n *Instance) knowsLeader() bool {
	leader, c := n.client.Status().Leader.ID, n.cluster()
	if c == nil || leader.IsZero() {
		return true
	}
	s := c.Status()
	return n.names(&s)[leader].Name != ""
}

// askNames reports whether the leader has returned names. A new leader may know none yet.
func (n *Instance) askNames() bool {
	ctx, cancel := context.WithTimeout(context.Background(), replica.QuestionTime) // Close ends it by closing the port
	defer cancel()
	page, err := QueryOnce(ctx, n, query.QueryClient.Names, &query.StateRequest{})
	if err == nil {
		n.known.keep(n.env.clock.Now(), page, false)
	}
	return err == nil && len(page.Names) > 0
}

// rest waits for d. It returns early and reports false if the instance begins to leave.
func (n *Instance) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.leaving:
		return false
	}
}

func (n *Instance) upTo(d time.Duration) time.Duration {
	var b [8]byte
	n.env.random(b[:])
	return time.Duration(binary.BigEndian.Uint64(b[:]) % uint64(d))
}
