package mortise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/session/client"
)

// Session is a session in addition to that of its node, with its own lease. With a shorter TTL its
// locks are free sooner after a crash, but are lost after a shorter outage. The locks of one
// session are lost or kept together. A session ends when its node ends.
type Session struct {
	node   *Node
	client *client.Client
}

// NewSession opens a session with its own TTL, which must be at least 1 s. A TTL that is longer
// than the group's is reduced to the group's. NewSession waits for a leader until ctx ends.
// Renewal, loss and replacement of the session work as for the node's own. A request in one session
// never counts as made under a lock of another session, so deadlocks between sessions are not
// found. If a node already has 128 such sessions, NewSession fails with ErrNoRoom. Close the
// session when you no longer need it.
func (n *Node) NewSession(ctx context.Context, ttl time.Duration) (*Session, error) {
	if ttl < minSessionTTL {
		return nil, fmt.Errorf("%w: NewSession: the TTL is %v; want at least %v", ErrBadRequest, ttl, minSessionTTL)
	}
	if err := n.admit(ctx); err != nil {
		return nil, err
	}
	own, err := n.engine.Open(ttl)
	if err != nil {
		return nil, err
	}
	s := &Session{node: n, client: own}
	if err := s.client.WaitAttached(ctx); err != nil {
		n.engine.Drop(s.client)
		return nil, n.explain("open a session", err)
	}
	return s, nil
}

// Acquire is [Node.Acquire] in this session. If ctx belongs to a lock that covers the request, that
// lock is entered again even if it belongs to another session.
func (s *Session) Acquire(ctx context.Context, r Request) (*Lock, error) {
	return s.node.acquire(ctx, s.client, r)
}

// Lock is [Node.Lock] in this session.
func (s *Session) Lock(ctx context.Context, key string) (*Lock, error) {
	return s.Acquire(ctx, Request{Key: key})
}

// TTL returns the TTL that the group has granted.
func (s *Session) TTL() time.Duration { return s.client.Status().TTL }

// Close ends the session in the group. Waiting calls fail with ErrClosed. While one of its locks is
// held, Close fails and keeps the session: unlock the locks first. After any other error, as when
// ctx ends before a leader is found, this process cannot use the session, and the session expires
// in the group.
func (s *Session) Close(ctx context.Context) error {
	err := s.client.CloseSession(ctx)
	if errors.Is(err, client.ErrStillHeld) {
		return err
	}
	s.node.engine.Drop(s.client)
	if err != nil {
		return s.node.explain("close a session", err)
	}
	return nil
}

// SessionPhase is the progress of an instance towards a session with the leader.
type SessionPhase string

// The phases of a session, in order.
const (
	SessionSeeking   SessionPhase = "seeking"   // waits before it asks an instance for a session
	SessionOpening   SessionPhase = "opening"   // has asked an instance for a session
	SessionAttaching SessionPhase = "attaching" // has asked the leader to resume its session
	SessionAttached  SessionPhase = "attached"  // connected to the leader, which can grant it locks
)

// LeaseState is the state of the lease of a session.
type LeaseState string

// The states of a lease.
const (
	LeaseSafe LeaseState = "safe" // neither LeaseJeopardy nor LeaseLost
	// two thirds of the TTL have passed since the last acknowledged renewal
	LeaseJeopardy LeaseState = "jeopardy"
	LeaseLost     LeaseState = "lost" // there is no lease, or it has ended, so no lock is held
)
