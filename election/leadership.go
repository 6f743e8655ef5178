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

// Leadership is one term of one leader. It ends by Resign or when it is lost, and never resumes:
// the next term has a higher token. Only Campaign and Run create one. It is safe for concurrent use
// and must not be copied.
type Leadership struct {
	grant grant
}

// Token returns the fencing token of this leadership, which rises with every leader. It never
// changes and is never 0.
func (l *Leadership) Token() mortise.Token { return l.grant.Token() }

// Err returns nil while this instance leads, and afterwards the reason: mortise.ErrLost, or
// mortise.ErrUnlocked after Resign. It reads the clock at each call, so it can report the end
// before Done is closed. After an error it never returns nil again.
func (l *Leadership) Err() error { return l.grant.Err() }

// Done returns a channel that is closed when the leadership is over, perhaps a little after Err has
// changed.
func (l *Leadership) Done() <-chan struct{} { return l.grant.Done() }

// Context returns a child of parent that ends with the leadership, or when the node begins to
// leave. Its cause is mortise.ErrLost, ErrUnlocked, ErrLeaving or ErrClosed. mortise.TokenFrom
// finds the token in it. Each call costs a goroutine until parent or the leadership ends.
func (l *Leadership) Context(parent context.Context) context.Context {
	return context.WithValue(l.grant.Context(parent), placeKey{}, &place{token: l.Token(), outer: placeOf(parent)})
}

// Resign ends the leadership, and the next candidate leads: end the work first. It does so even if
// ctx has ended, which bounds only the wait for the confirmation. The errors are those of
// mortise.Lock.Unlock: nil once it is confirmed, also if called again, and mortise.ErrLost if the
// leadership was lost before.
func (l *Leadership) Resign(ctx context.Context) error { return l.grant.Unlock(ctx) }

// place is the value in the context of a leadership: its token, and the enclosing place.
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
// the same token, so a grant with this token is that leadership, entered again.
func stands(ctx context.Context, token mortise.Token) bool {
	for p := placeOf(ctx); p != nil; p = p.outer {
		if p.token == token {
			return true
		}
	}
	return false
}
