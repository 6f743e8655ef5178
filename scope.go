package mortise

import (
	"cmp"
	"context"

	"github.com/mortise-lock/mortise/session/client"
)

// scope is what the context of a lock carries: the lock, and the scope around it.
type scope struct {
	lock  *Lock // nil: there is only a token
	token Token // without a lock
	outer *scope
}

type scopeKey struct{}

// TokenFrom returns the fencing token of the lock under which ctx stands: of several the innermost. It reports false if ctx does not come from
// [Lock.Context], from [Node.Do] or from [ContextWithToken]. So whatever writes to a resource at the bottom of a call finds the token there.
func TokenFrom(ctx context.Context) (Token, bool) {
	s := scopeOf(ctx)
	switch {
	case s == nil:
		return 0, false
	case s.lock == nil:
		return s.token, true
	}
	return s.lock.Token(), true
}

// ContextWithToken returns a child of parent in which [TokenFrom] finds token. It is for those who stand in for a Node: a fake in a test, or a
// wrapper that decides which of several tokens counts. It locks nothing, and ends only with parent; the locks of parent stay known.
func ContextWithToken(parent context.Context, token Token) context.Context {
	return context.WithValue(parent, scopeKey{}, &scope{token: token, outer: scopeOf(parent)})
}

func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

// scope looks for what a request is made under: a new handle of a lock that covers it, or else the innermost lock of the same session that is held. One that
// was entered again is where it was entered first: what was locked in between is further in, and cannot be unlocked without this request. The error
// says that the lock covers the request and cannot give what it asks for besides.
func (n *Node) scope(ctx context.Context, client *client.Client, r *Request) (again *Lock, under *client.Request, err error) {
	if ctx.Err() != nil {
		return nil, nil, nil // what is asked for must fail
	}
	nearest := -1
	for s, at := scopeOf(ctx), 0; s != nil; s, at = s.outer, at+1 {
		if s.lock == nil || s.lock.first().node != n || s.lock.Err() != nil {
			continue
		}
		l := s.lock.first()
		if l.covers(r) {
			if err := l.enterable(r); err != nil {
				return nil, nil, err
			}
			if l.enter() {
				again := n.watched(&Lock{node: n, again: l})
				again.limitTo(r.MaxHold) // last: its goroutine may end the handle at once
				return again, nil, nil
			}
		}
		if !l.hold.Of(client) {
			continue
		}
		if began := at + s.began(); under == nil || began < nearest {
			under, nearest = l.hold.Request(), began
		}
	}
	return nil, under, nil
}

// began returns how many scopes further out the lock of s was entered first.
func (s *scope) began() (further int) {
	at := 0
	for o := s; o != nil; o = o.outer {
		if o.lock != nil && o.lock.first() == s.lock.first() {
			further = at
		}
		at++
	}
	return further
}

// first returns the handle that Acquire was granted; the others entered it again.
func (l *Lock) first() *Lock {
	if l.again != nil {
		return l.again
	}
	return l
}

// covers reports whether whoever holds l has what r asks for.
func (l *Lock) covers(r *Request) bool {
	permits, of := l.hold.Terms()
	if r.Resume != 0 || r.Permits != 0 || permits != 0 && (of != 0 || !r.Shared) {
		return false
	}
	if len(r.Keys) == 0 {
		return l.hold.Holds(r.Key)
	}
	for _, key := range r.Keys {
		if !l.hold.Holds(key) {
			return false
		}
	}
	return true
}

// enter counts one handle more, unless the last one is unlocked.
func (l *Lock) enter() bool {
	l.counting.Lock()
	defer l.counting.Unlock()
	if l.others < 0 {
		return false
	}
	l.others++
	return true
}

// How a handle has been unlocked.
const (
	handleIsLeft uint32 = iota + 1 // others have the lock
	handleWasLast
	handleIsOverdue // its own time was over
)

// exit counts one handle less, the first time it is called for l. It reports whether others have the lock then, and whether this was the first
// time. Whoever calls it meanwhile for the same handle waits: he must not find it unlocked, and the lock not yet.
func (l *Lock) exit() (left, first bool) { return l.exitAs(0) }

// exitAs is exit for a handle that is over as said; 0: it was unlocked.
func (l *Lock) exitAs(how uint32) (left, first bool) {
	f := l.first()
	f.counting.Lock()
	defer f.counting.Unlock()
	if before := l.exited.Load(); before != 0 {
		return before == handleIsLeft, false
	}
	f.others--
	if f.others >= 0 {
		l.exited.Store(cmp.Or(how, handleIsLeft))
		return true, true
	}
	l.exited.Store(cmp.Or(how, handleWasLast))
	return false, true
}
