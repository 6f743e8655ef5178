package instance

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// maxOwnSessions bounds those of one node. The leader allows more, for those that are left behind
// when a session begins anew.
const maxOwnSessions = 128

// Open begins a session of the user's own, which ends with this instance or by Drop.
func (n *Instance) Open(ttl time.Duration) (*client.Client, error) {
	own := client.New(client.Config{
		Clock: n.env.clock, TTL: ttl, Send: n.submit, Random: n.env.random, Logger: n.logger,
		Watch: (&witness{node: n, own: true}).news,
	})
	if err := n.own.add(own); err != nil {
		own.Close()
		return nil, err
	}
	return own, nil
}

// Drop ends a session of the user's own for this process.
func (n *Instance) Drop(c *client.Client) {
	n.own.drop(c)
	c.Close()
}

// Clients returns the clients of all sessions: that of this instance first.
func (n *Instance) Clients() []*client.Client { return n.clients() }

// ownSessions are the user's sessions of a node.
type ownSessions struct {
	mu      sync.Mutex // never held across a wait
	all     []*client.Client
	record  []byte // of the present life; nil: the node is in no group
	targets []session.Target
	life    uint64 // counts what was said of them
	ended   bool
}

// clients returns all clients of the node.
func (n *Instance) clients() []*client.Client {
	return append([]*client.Client{n.client}, n.own.list()...)
}

func (o *ownSessions) list() []*client.Client {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}

// add takes a new client in, and binds it if the node is in a group.
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
	// again if another life has begun meanwhile: what it said came before what is said here
	for life := uint64(0); life != o.life; {
		var record []byte
		var targets []session.Target
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

// rebind begins a new life of all, or with a nil record ends the present one.
func (o *ownSessions) rebind(record []byte, targets []session.Target) {
	o.mu.Lock()
	o.record, o.targets = record, targets
	o.life++
	all := slices.Clone(o.all)
	o.mu.Unlock()
	for _, c := range all {
		c.Rebind(record, targets)
	}
}

// aim says whom to ask.
func (o *ownSessions) aim(targets []session.Target) {
	o.mu.Lock()
	o.targets = targets
	o.life++
	all := slices.Clone(o.all)
	o.mu.Unlock()
	for _, c := range all {
		c.SetTargets(targets)
	}
}

// shut closes all.
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
