package mortise

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/session/client"
)

// ResumeOptions are what a resumed hold gets instead of what it had. The fields are those of
// [Request]. The zero value keeps the LockDelay, the Value and the Labels of the hold.
type ResumeOptions struct {
	MaxHold       time.Duration // counts from the return of Resume; zero means no limit
	JeopardyGrace time.Duration // zero means none
	LockDelay     time.Duration // zero keeps that of the hold
	Notice        bool
	Value         string // empty, with empty Labels, keeps Value and Labels of the hold
	Labels        map[string]string
}

// Resume takes over the hold of key that has this token, with all its keys, instead of waiting for
// the lock. Either its holder is gone and [Request.LockDelay] keeps the hold, or its holder has
// passed the token to this caller. In the second case the holder's lock ends with a *[ForcedError].
// The resumed lock has a higher token, which fences off the former holder. It has the modes and the
// trees that the hold had, and Downgrade and requests under its context follow that. ErrNotHeld
// means that no hold has this token; [Node.Peek] reports the present token. An upgradable or sticky
// lock cannot be resumed.
//
// A derived secret needs the right to lock each key of the hold. If the session of the hold has
// not ended, and was opened neither by this instance nor with the same derived secret, it also
// needs read and force on each key. Otherwise the error is an ErrNotAllowed. [Node.Audit] reports
// that a hold was taken over while its session had not ended.
//
// If ctx ends before the answer, a hold with a LockDelay exists but may have another token, and a
// hold without a LockDelay may have ended.
func (n *Node) Resume(ctx context.Context, key string, token Token, o ResumeOptions) (*Lock, error) {
	return n.resume(ctx, n.client, key, token, &o)
}

// Resume is [Node.Resume] in this session.
func (s *Session) Resume(ctx context.Context, key string, token Token, o ResumeOptions) (*Lock, error) {
	return s.node.resume(ctx, s.client, key, token, &o)
}

func (n *Node) resume(ctx context.Context, by *client.Client, key string, token Token, o *ResumeOptions) (*Lock,
	error) {
	if token == 0 {
		return nil, fmt.Errorf("%w: Resume of %s: the token is 0, which no hold has", ErrBadRequest, shownKey(key))
	}
	return n.acquire(ctx, by, demand{resume: token, Request: Request{Key: key, MaxHold: o.MaxHold,
		JeopardyGrace: o.JeopardyGrace, LockDelay: o.LockDelay, Notice: o.Notice, Value: o.Value, Labels: o.Labels}})
}
