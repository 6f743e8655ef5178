package election

import (
	"context"

	"github.com/mortise-lock/mortise"
)

type grant interface {
	Token() mortise.Token
	Err() error
	Beat()
	Done() <-chan struct{}
	Context(parent context.Context) context.Context
	Regain(ctx context.Context) error
	Unlock(ctx context.Context) error
	SetValue(ctx context.Context, value string) error
}

// Leadership is one term of one leader. It ends with Resign or when it is lost. The next term has a
// higher token. Only Campaign and Run create a Leadership. It must not be copied.
type Leadership struct {
	grant grant
	name  string // of the election
}

// Token returns the fencing token of this leadership, which is higher than that of every earlier
// leadership. It never changes and is never 0.
func (l *Leadership) Token() mortise.Token { return l.grant.Token() }

// Err returns nil while this instance leads, and afterwards the reason why it does not:
// mortise.ErrLost, or mortise.ErrUnlocked after Resign. It reads the clock at each call, so it can
// report the end before Done is closed. Once Err has returned an error, it never returns nil,
// except after mortise.ErrInJeopardy; see [Options.JeopardyGrace].
func (l *Leadership) Err() error { return l.grant.Err() }

// Beat reports that the work of the leader moves, for [Options.MaxIdle]. It costs one atomic
// addition. Proclaim also beats.
func (l *Leadership) Beat() { l.grant.Beat() }

// Done returns a channel that is closed when the leadership has ended, perhaps shortly after Err
// reports that.
func (l *Leadership) Done() <-chan struct{} { return l.grant.Done() }

// Context returns a child of parent that ends when the leadership ends or when the node begins to
// leave. Its cause is then mortise.ErrLost, ErrInJeopardy, ErrUnlocked, ErrLeaving or ErrClosed.
// mortise.TokenFrom finds the token in it. Each call uses a goroutine until parent or the
// leadership ends.
func (l *Leadership) Context(parent context.Context) context.Context {
	return context.WithValue(l.grant.Context(parent), placeKey{}, &place{l.Token(), l.name, placeOf(parent)})
}

// Proclaim changes the value of this leadership, for example because the leader has a new address.
// Leader and Observe report it with the same token. It is gone with the leadership: a later one of
// the same Run begins with the value that Run was given. Its errors are those of
// mortise.Lock.SetValue.
func (l *Leadership) Proclaim(ctx context.Context, value string) error {
	return l.grant.SetValue(ctx, value)
}

// Regain waits until a leadership in doubt is valid again or has ended, as mortise.Lock.Regain
// does.
func (l *Leadership) Regain(ctx context.Context) error { return l.grant.Regain(ctx) }

// Resign ends the leadership, and the next candidate leads, so end the work before the call. It
// resigns even if ctx has ended: ctx limits only the wait for the confirmation. Resign returns nil
// if the resignation is confirmed, also in a repeated call, and mortise.ErrLost if the leadership
// was lost before. Its other errors are those of mortise.Lock.Unlock.
func (l *Leadership) Resign(ctx context.Context) error { return l.grant.Unlock(ctx) }

type place struct {
	token mortise.Token
	name  string
	outer *place
}

type placeKey struct{}

func placeOf(ctx context.Context) *place {
	p, _ := ctx.Value(placeKey{}).(*place)
	return p
}

// stands reports whether ctx comes from the leadership with this token. The group never gives two
// holds the same token, so a new handle with that token belongs to the same hold.
func stands(ctx context.Context, token mortise.Token) bool {
	for p := placeOf(ctx); p != nil; p = p.outer {
		if p.token == token {
			return true
		}
	}
	return false
}

// leads reports whether ctx comes from a leadership of the election with this name. A leadership
// holds the key of its election, so a request under ctx for this key enters its lock.
func leads(ctx context.Context, name string) bool {
	for p := placeOf(ctx); p != nil; p = p.outer {
		if p.name == name {
			return true
		}
	}
	return false
}
