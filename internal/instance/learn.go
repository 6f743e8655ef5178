package instance

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// An instance that does not gossip asks the leader for the names of the leader and of the other
// replicas. Status and hooks need these names. The instance asks after a random delay, so that a
// thousand instances do not ask simultaneously.

const (
	learnWithin = 10 * time.Second // limit of the random delay before each attempt
	learnTries  = 3
)

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

func (n *Instance) knowsLeader() bool {
	leader, c := n.client.Status().Leader.ID, n.cluster()
	if c == nil || leader.IsZero() {
		return true
	}
	s := c.Status()
	return n.names(&s).Of(leader).Name != ""
}

// askNames asks for names, and reports whether the leader has returned any. A new leader may have
// no names at first.
func (n *Instance) askNames() bool {
	// Close ends the query by closing the port.
	ctx, cancel := context.WithTimeout(context.Background(), replica.QuestionTime)
	defer cancel()
	page, err := QueryOnce(ctx, n, query.QueryClient.Names, &query.StateRequest{})
	if err == nil {
		n.known.read(page)
	}
	return err == nil && len(page.Names) > 0
}

// rest waits for d. If the instance begins to leave, rest returns false earlier.
func (n *Instance) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.ending.leaving:
		return false
	}
}

func (n *Instance) upTo(d time.Duration) time.Duration {
	var b [8]byte
	n.env.random(b[:])
	return time.Duration(binary.BigEndian.Uint64(b[:]) % uint64(d))
}
