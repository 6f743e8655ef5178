package election

import (
	"context"

	"github.com/mortise-lock/mortise"
)

// grant is the part of *mortise.Lock that a Leadership uses.
type grant interface {
	Token() mortise.Token
	Err() error
	Done() <-chan struct{}
	Context(parent context.Context) context.Context
	Unlock(ctx context.Context) error
}

// Leadership is one term of one leader. It ends with Resign or when it is lost, and does not begin
// again: the next term has a higher token. Only Campaign and Run create one. It must not be copied.
type Leadership struct {
	grant grant
}

// Token returns the fencing token of this leadership, which is higher than those of all earlier
// leaderships. It never changes and is never 0.
func (l *Leadership) Token() mortise.Token { return l.grant.Token() }

// Err returns nil while this instance leads, and afterwards the reason: mortise.ErrLost, or
// mortise.ErrUnlocked after Resign. Err reads the clock at each call, so it can report the end
// before the channel of Done is closed. After Err has returned an error it never returns nil.
func (l *Leadership) Err() error { return l.grant.Err() }

// Done returns a channel that is closed when the leadership has ended, perhaps a little after Err
// begins to return an error.
func (l *Leadership) Done() <-chan struct{} { return l.grant.Done() }

// Context returns a child of parent that ends with the leadership, or when the node begins to
// leave. Its cause is mortise.ErrLost, ErrUnlocked, ErrLeaving or ErrClosed. mortise.TokenFrom
// returns the token from that context. Each call costs a goroutine until parent or the leadership
// ends.
func (l *Leadership) Context(parent context.Context) context.Context {
	return context.WithValue(l.grant.Context(parent), placeKey{}, &place{token: l.Token(), outer: placeOf(parent)})
}

// Resign ends the leadership, and the next candidate leads. End the work before you call it. ctx
// bounds only the wait for the confirmation: Resign ends the leadership even if ctx has ended. It
// returns what mortise.Lock.Unlock returns: nil if the end is confirmed, also in a repeated call,
// and mortise.ErrLost if the leadership was lost before.
func (l *Leadership) Resign(ctx context.Context) error { return l.grant.Unlock(ctx) }

// place is the value that the context of a leadership carries.
type place struct {
	token mortise.Token
	outer *place
}

type placeKey struct{}

func placeOf(ctx context.Context) *place {
	p, _ := ctx.Value(placeKey{}).(*place)
	return p
}

// stands reports whether ctx comes from the leadership with this token. No two grants of a group
// have the same token. So a new grant with that token has entered the lock again.
func stands(ctx context.Context, token mortise.Token) bool {
	for p := placeOf(ctx); p != nil; p = p.outer {
		if p.token == token {
			return true
		}
	}
	return false
}
