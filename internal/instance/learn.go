package instance

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// This file is how an instance that does not gossip learns what its leader and the other replicas
// are called, so that Status and hooks show names. It asks at most once for each leader whose name
// it does not know, and not at once: after a change of leader a thousand instances would ask
// together.

const (
	learnWithin = 10 * time.Second // for one attempt: it begins at a random moment of this time
	learnTries  = 3
)

// learnNames asks the leader, in a while, if its name is not known then.
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

// knowsLeader reports whether there is nothing to learn: no leader, or one whose name is known.
func (n *Instance) knowsLeader() bool {
	leader, c := n.client.Status().Leader.Peer, n.cluster()
	if c == nil || leader.IsZero() {
		return true
	}
	s := c.Status()
	return n.people(&s)[leader].Name != ""
}

// askNames reports whether the leader has said names. One that has just begun to lead may know none
// yet.
func (n *Instance) askNames() bool {
	ctx, cancel := context.WithTimeout(context.Background(), replica.QuestionTime) // ended by Close, with the port
	defer cancel()
	page, err := LookOnce(ctx, n, query.QueryClient.Names, &query.StateRequest{})
	if err == nil {
		n.known.keep(n.env.clock.Now(), page, false)
	}
	return err == nil && len(page.Names) > 0
}

// rest waits, and reports false if the node begins to leave before.
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

// upTo returns a random time below d.
func (n *Instance) upTo(d time.Duration) time.Duration {
	var b [8]byte
	n.env.random(b[:])
	return time.Duration(binary.BigEndian.Uint64(b[:]) % uint64(d))
}
