package instance

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session/client"
)

// maxOwnSessions limits the user's own sessions of one node. The leader's limit is higher, because
// it includes old sessions that have not expired.
const maxOwnSessions = 128

// Open begins a session of the user's own. The session ends with Drop, or when this instance ends.
func (n *Instance) Open(ttl time.Duration) (*client.Client, error) {
	own := client.New(client.Config{
		Clock: n.env.clock, TTL: ttl, Send: n.submit, Random: n.env.random, Logger: n.logger,
		Stays: n.config.Stays, StayIdle: n.config.StayIdle, Watch: (&observer{node: n, own: true}).news,
	})
	if err := n.own.add(own); err != nil {
		own.Close()
		return nil, err
	}
	return own, nil
}

// Drop closes a session of the user's own.
func (n *Instance) Drop(c *client.Client) {
	n.own.drop(c)
	c.Close()
}

// Clients returns the clients of all sessions. The first client is that of this instance's own
// session.
func (n *Instance) Clients() []*client.Client { return n.clients() }

type ownSessions struct {
	mu      sync.Mutex // never held across a wait
	all     []*client.Client
	record  []byte // record of the present incarnation; nil while the node is in no group
	targets []nodeid.Endpoint
	life    uint64
	ended   bool
}

func (n *Instance) clients() []*client.Client {
	return append([]*client.Client{n.client}, n.own.list()...)
}

func (o *ownSessions) list() []*client.Client {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}

func (o *ownSessions) add(c *client.Client) error {
	o.mu.Lock()
	switch {
	case o.ended:
		o.mu.Unlock()
		return client.ErrClosed
	case len(o.all) == maxOwnSessions:
		o.mu.Unlock()
		return fmt.Errorf("%w: NewSession: there are %d already, the most that a node may have", client.ErrNoRoom,
			maxOwnSessions)
	}
	o.all = append(o.all, c)
	// While mu is released, rebind or aim may give c new values, and c.Rebind may then replace these
	// with old ones. So repeat c.Rebind until o.life stays the same.
	for life := uint64(0); life != o.life; {
		var record []byte
		var targets []nodeid.Endpoint
		life, record, targets = o.life, o.record, o.targets
		o.mu.Unlock()
		c.Rebind(record, targets)
		o.mu.Lock()
	}
	o.mu.Unlock()
	return nil
}

func (o *ownSessions) drop(c *client.Client) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = slices.DeleteFunc(o.all, func(each *client.Client) bool { return each == c })
}

func (o *ownSessions) rebind(record []byte, targets []nodeid.Endpoint) {
	o.mu.Lock()
	o.record, o.targets = record, targets
	o.life++
	all := slices.Clone(o.all)
	o.mu.Unlock()
	for _, c := range all {
		c.Rebind(record, targets)
	}
}

func (o *ownSessions) aim(targets []nodeid.Endpoint) {
	o.mu.Lock()
	o.targets = targets
	o.life++
	all := slices.Clone(o.all)
	o.mu.Unlock()
	for _, c := range all {
		c.SetTargets(targets)
	}
}

func (o *ownSessions) shut() {
	o.mu.Lock()
	o.ended = true
	all := o.all
	o.all = nil
	o.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}
