package election

import (
	"context"

	"github.com/mortise-lock/mortise"
)

// grant is what a Leadership needs of a *mortise.Lock.
type grant interface {
	Token() mortise.Token
	Err() error
	Done() <-chan struct{}
	Context(parent context.Context) context.Context
	Unlock(ctx context.Context) error
}

// Leadership is one term of one leader, until Resign or until it is lost. Then it is over for ever:
// the next one is another Leadership, with a higher token. Only Campaign and Run make one. It is
// safe for concurrent use; it must not be copied.
type Leadership struct {
	grant grant
}

// Token returns the fencing token of this leadership, which rises with every leader. It never
// changes, and is never 0.
func (l *Leadership) Token() mortise.Token { return l.grant.Token() }

// Err returns nil while this instance leads, and the reason once it does not: mortise.ErrLost, or
// mortise.ErrUnlocked after Resign. It computes from the clock at the call, so it knows also when
// nobody has had the time to close Done. Once it is not nil it stays so.
func (l *Leadership) Err() error { return l.grant.Err() }

// Done returns a channel that is closed when the leadership is over, for whatever reason. It may
// close a little after Err has changed.
func (l *Leadership) Done() <-chan struct{} { return l.grant.Done() }

// Context returns a child of parent that ends with the leadership, or when the node begins to
// leave; context.Cause says why: mortise.ErrLost, ErrUnlocked, ErrLeaving or ErrClosed.
// mortise.TokenFrom finds the token in it. Each call costs a goroutine until parent or the
// leadership ends: call it once.
func (l *Leadership) Context(parent context.Context) context.Context {
	return context.WithValue(l.grant.Context(parent), placeKey{}, &place{token: l.Token(), outer: placeOf(parent)})
}

// Resign ends the leadership, and the next in the queue leads: end the work first. It always does,
// even if ctx has ended, which bounds only the wait for the confirmation. The errors are those of
// mortise.Lock.Unlock: nil when it is confirmed, also when called again, and mortise.ErrLost if the
// leadership was lost before.
func (l *Leadership) Resign(ctx context.Context) error { return l.grant.Unlock(ctx) }

// place is what the context of a leadership carries: its token, and the place around it.
type place struct {
	token mortise.Token
	outer *place
}

type placeKey struct{}

func placeOf(ctx context.Context) *place {
	p, _ := ctx.Value(placeKey{}).(*place)
	return p
}

// stands reports whether ctx stands under the leadership of token. No two grants of a group have
// the same token, so a grant with it was not waited for: it is that leadership, entered again.
func stands(ctx context.Context, token mortise.Token) bool {
	for p := placeOf(ctx); p != nil; p = p.outer {
		if p.token == token {
			return true
		}
	}
	return false
}
