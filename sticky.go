package mortise

import (
	"context"

	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/session/client"
)

// StickyOptions configure LockSticky. The zero value waits for the exclusive lock.
type StickyOptions struct {
	Shared bool // the lock is Shared instead of Exclusive
	Try    bool // as Request.Try
	Notice bool // as Request.Notice
}

// LockSticky is like [Node.Lock], but the session keeps the lock after Unlock. Its next sticky
// request for the key is then granted without a message. After 1,024 such grants, or one TTL, a
// request asks the group again. Several such requests of one mode are served in the order of their
// calls. When another request waits, in any session, at most 16 callers that already waited here
// are still granted the lock, and only within 10 ms. The lock is given back when the last of them
// unlocks. Several sessions may keep a shared lock at once, until an exclusive request waits. If
// readers have entered an exclusive lock again, it does not become shared when they are left.
//
// If an instance that keeps a free lock dies, the lock stays taken until the session ends, as if
// it were held. Unlock is confirmed by the lease and not by a majority. Peek sets Kept for a
// kept lock, in use or free, and returns a token that no caller has. Check and ForceUnlock fail
// with ErrKept for the token of a caller. TryLock elsewhere asks the session that keeps
// the lock, and fails with ErrNotReady if it has no answer after 2 s.
//
// A sticky request under another lock is an ordinary one.
func (n *Node) LockSticky(ctx context.Context, key string, o StickyOptions) (*Lock, error) {
	return n.lockSticky(ctx, n.client, key, o)
}

// LockSticky is [Node.LockSticky] in this session.
func (s *Session) LockSticky(ctx context.Context, key string, o StickyOptions) (*Lock, error) {
	return s.node.lockSticky(ctx, s.client, key, o)
}

func (n *Node) lockSticky(ctx context.Context, by *client.Client, key string, o StickyOptions) (*Lock, error) {
	d := demand{sticky: true, Request: Request{Key: key, Try: o.Try, Notice: o.Notice}}
	if o.Shared {
		d.Mode = Shared
	}
	return n.acquire(ctx, by, d)
}

// pass asks for a lock that the client may keep. The lock and its pass are one allocation.
func (n *Node) pass(ctx context.Context, by *client.Client, d *demand, call *trace.Call) (*Lock, error) {
	l := &struct {
		Lock
		pass client.Pass
	}{Lock: Lock{node: n, call: call}}
	l.count(d)
	l.pass.Key, l.pass.Shared, l.pass.Try, l.pass.Notice = d.Key, d.Mode == Shared, d.Try, d.Notice
	if call != nil {
		call.Asks(l.pass.Request(), &l.hold)
	}
	return &l.Lock, by.AcquireKept(ctx, &l.hold, &l.pass)
}
