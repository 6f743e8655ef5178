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
	if err := n.sessions.add(own); err != nil {
		own.Close()
		return nil, err
	}
	return own, nil
}

// Drop closes a session of the user's own.
func (n *Instance) Drop(c *client.Client) {
	n.sessions.drop(c)
	c.Close()
}

// Clients returns the clients of all sessions. The first client is that of this instance's own
// session.
func (n *Instance) Clients() []*client.Client {
	var all []*client.Client
	n.sessions.each(func(c sessionClient) {
		if c, ok := c.(*client.Client); ok {
			all = append(all, c)
		}
	})
	return all
}

// sessions are the clients of all sessions of an instance: its own one, and those of the user. An
// event that concerns sessions reaches all of them through one method.
type sessions struct {
	first sessionClient // the client of the instance's own session; set by Start

	mu      sync.Mutex // guards the fields below; never held across a wait
	more    []sessionClient
	record  []byte // record of the present incarnation; nil while the node is in no group
	targets []nodeid.Endpoint
	life    uint64
	ended   bool
}

func (s *sessions) each(do func(sessionClient)) {
	do(s.first)
	for _, c := range s.own() {
		do(c)
	}
}

// list returns the clients of all sessions, the instance's own one first.
func (s *sessions) list() []sessionClient { return append([]sessionClient{s.first}, s.own()...) }

func (s *sessions) own() []sessionClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.more)
}

func (s *sessions) add(c sessionClient) error {
	s.mu.Lock()
	switch {
	case s.ended:
		s.mu.Unlock()
		return client.ErrClosed
	case len(s.more) == maxOwnSessions:
		s.mu.Unlock()
		return fmt.Errorf("%w: NewSession: there are %d already, the most that a node may have", client.ErrNoRoom,
			maxOwnSessions)
	}
	s.more = append(s.more, c)
	// While mu is released, rebind or aim may give c new values, and c.Rebind may then replace these
	// with old ones. So repeat c.Rebind until s.life stays the same.
	for life := uint64(0); life != s.life; {
		var record []byte
		var targets []nodeid.Endpoint
		life, record, targets = s.life, s.record, s.targets
		s.mu.Unlock()
		c.Rebind(record, targets)
		s.mu.Lock()
	}
	s.mu.Unlock()
	return nil
}

func (s *sessions) drop(c sessionClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = slices.DeleteFunc(s.more, func(each sessionClient) bool { return each == c })
}

// rebind begins a new incarnation with the record of the instance's own session, and the record of
// each other session. Nil records mean no group.
func (s *sessions) rebind(first, own []byte, targets []nodeid.Endpoint) {
	s.mu.Lock()
	s.record, s.targets = own, targets
	s.life++
	all := slices.Clone(s.more) // a client that is added later gets the new values from add alone
	s.mu.Unlock()
	s.first.Rebind(first, targets)
	for _, c := range all {
		c.Rebind(own, targets)
	}
}

// aim passes the addresses of the voters to all sessions, also to those that are opened later.
func (s *sessions) aim(targets []nodeid.Endpoint) {
	s.mu.Lock()
	s.targets = targets
	s.life++
	s.mu.Unlock()
	s.each(func(c sessionClient) { c.SetTargets(targets) })
}

func (s *sessions) shut() {
	s.mu.Lock()
	s.ended = true
	all := s.more
	s.more = nil
	s.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
	s.first.Close()
}
