package mortise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/session/client"
)

// Session is a lease of its own beside the node's, for locks that should be free sooner after a
// crash, at the price that a shorter outage loses them; or for a part of a service whose locks
// should be lost, or kept, together. All its methods are safe for concurrent use. It ends with its
// node.
type Session struct {
	node   *Node
	client *client.Client
}

// NewSession opens a session with its own TTL: at least 1 s, and at most the group's, to which a
// longer one is shortened. It waits for a leader until ctx ends. What is said of the locks of a
// node holds for those of a session: its renewals, its loss, and the new one that is opened in its
// place. A lock of one session is not asked for under a lock of another: between them a deadlock is
// not found. At most 128 at a time, else ErrNoRoom. Close it.
func (n *Node) NewSession(ctx context.Context, ttl time.Duration) (*Session, error) {
	if ttl < minSessionTTL {
		return nil, fmt.Errorf("%w: NewSession: the TTL is %v, at least %v", ErrBadRequest, ttl, minSessionTTL)
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

// Acquire is [Node.Acquire] in this session. A lock that a context stands under is entered again
// whatever session it is of.
func (s *Session) Acquire(ctx context.Context, r Request) (*Lock, error) {
	return s.node.acquire(ctx, s.client, r)
}

// Lock is [Node.Lock] in this session.
func (s *Session) Lock(ctx context.Context, key string) (*Lock, error) {
	return s.Acquire(ctx, Request{Key: key})
}

// TTL returns the TTL that the group has granted.
func (s *Session) TTL() time.Duration { return s.client.Status().TTL }

// Close ends the session in the group. Calls that wait end with ErrClosed. While one of its locks
// is held, by code that may still run, it refuses, and the error says so: unlock them first. After
// any other error, as when ctx ends before a leader is found, the session is over for this process,
// and runs out in the group.
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

// SessionPhase says how far an instance is on its way to a session with the leader.
type SessionPhase string

// The phases of a session, in the order of the way.
const (
	SessionSeeking   SessionPhase = "seeking"   // has no instance to ask at the moment
	SessionOpening   SessionPhase = "opening"   // has asked for a session
	SessionAttaching SessionPhase = "attaching" // has asked the leader to take its session up again
	SessionAttached  SessionPhase = "attached"  // talks to the leader: it can be granted locks
)

// LeaseState says how far the lease of a session is from its end.
type LeaseState string

// The states of a lease.
const (
	LeaseSafe LeaseState = "safe" // neither of the two below
	// two thirds of the TTL have passed since the last renewal that was acknowledged
	LeaseJeopardy LeaseState = "jeopardy"
	LeaseLost     LeaseState = "lost" // there is none, or its end has passed: nothing is held
)
