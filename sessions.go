package mortise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// Session is a lease of its own beside the node's, for locks that should be free sooner after a crash, at the price that a shorter outage loses them; or for a
// part of a service whose locks should be lost, or kept, together. All its methods are safe for concurrent use. It ends with its node.
type Session struct {
	node   *Node
	client *client.Client
}

// minSessionTTL leaves room for renewals, and for the margin between a holder's deadline and the leader's.
const minSessionTTL = time.Second

// maxOwnSessions bounds those of one node. The leader allows more, for those that are left behind when a session begins anew.
const maxOwnSessions = 128

// NewSession opens a session with its own TTL: at least 1 s, and at most the group's, to which a longer one is shortened. It waits for a leader until ctx ends.
// What is said of the locks of a node holds for those of a session: its renewals, its loss, and the new one that is opened in its place. A lock of one
// session is not asked for under a lock of another: between them a deadlock is not found. At most 128 at a time, else ErrNoRoom. Close it.
func (n *Node) NewSession(ctx context.Context, ttl time.Duration) (*Session, error) {
	if ttl < minSessionTTL {
		return nil, fmt.Errorf("%w: NewSession: the TTL is %v, at least %v", ErrBadRequest, ttl, minSessionTTL)
	}
	if err := n.admit(ctx); err != nil {
		return nil, err
	}
	s := &Session{node: n, client: client.New(client.Config{
		Clock: n.env.clock, TTL: ttl, Send: n.submit, Random: n.env.random, Logger: n.logger, Watch: (&witness{node: n, own: true}).news,
	})}
	if err := n.own.add(s.client); err != nil {
		s.client.Close()
		return nil, err
	}
	if err := s.client.WaitAttached(ctx); err != nil {
		n.own.drop(s.client)
		s.client.Close()
		return nil, n.explain("open a session", err)
	}
	return s, nil
}

// Acquire is [Node.Acquire] in this session. A lock that a context stands under is entered again whatever session it is of.
func (s *Session) Acquire(ctx context.Context, r Request) (*Lock, error) {
	return s.node.acquire(ctx, s.client, r)
}

// Lock is [Node.Lock] in this session.
func (s *Session) Lock(ctx context.Context, key string) (*Lock, error) {
	return s.Acquire(ctx, Request{Key: key})
}

// TTL returns the TTL that the group has granted.
func (s *Session) TTL() time.Duration { return s.client.Status().TTL }

// Close ends the session in the group. Calls that wait end with ErrClosed. While one of its locks is held, by code that may still run, it refuses, and the
// error says so: unlock them first. After any other error, as when ctx ends before a leader is found, the session is over for this process, and runs out in the group.
func (s *Session) Close(ctx context.Context) error {
	err := s.client.CloseSession(ctx)
	if errors.Is(err, client.ErrStillHeld) {
		return err
	}
	s.node.own.drop(s.client)
	s.client.Close()
	if err != nil {
		return s.node.explain("close a session", err)
	}
	return nil
}

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
func (n *Node) clients() []*client.Client {
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
		return ErrClosed
	case len(o.all) == maxOwnSessions:
		o.mu.Unlock()
		return fmt.Errorf("%w: NewSession: there are %d already, the most that a node may have", ErrNoRoom, maxOwnSessions)
	}
	o.all = append(o.all, c)
	for life := uint64(0); life != o.life; { // again if another life has begun meanwhile: what it said came before what is said here
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
