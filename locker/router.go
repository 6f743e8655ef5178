package locker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mortise-lock/mortise"
)

// ErrNoRoute means that no route of a Router has a prefix of the key. fn did not run, and nothing
// is held.
var ErrNoRoute = errors.New("locker: no route for this key")

// Route assigns the keys that begin with Prefix to a Locker, with limits for this instance.
type Route struct {
	// Prefix is a byte-wise prefix of keys. Write "tenant-1/" with the slash; "tenant-1" would
	// include the keys of tenant-10. "" matches every key that no other route matches. A prefix has
	// at most 512 bytes, and may occur once per Router.
	Prefix string

	// Locker locks these keys. Several routes may have the same Locker. Required.
	Locker Locker

	// MaxHolds is how many calls of this route may hold a lock at a time. At least 1.
	MaxHolds int

	// MaxWaiting is how many calls of this route may wait for a lock at a time. A call for a free
	// lock also waits until the lock is granted. At least 1.
	MaxWaiting int
}

// LimitError reports that a call exceeded a limit of its Route. fn did not run, and nothing is
// held. errors.Is reports that a LimitError is mortise.ErrOverloaded.
type LimitError struct {
	Route string // Route.Prefix
	Limit string // "MaxHolds" or "MaxWaiting"
	Max   int    // the limit, in calls
	Key   string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("locker: route %q has reached its %s of %d calls (lock %q)", e.Route, e.Limit, e.Max, e.Key)
}

// Is reports whether target is mortise.ErrOverloaded.
func (e *LimitError) Is(target error) bool { return target == mortise.ErrOverloaded }

// Router is a Locker that passes each call to the route with the longest Prefix of its key. A call
// that exceeds a limit of its route does not wait, but fails with a *LimitError. Both limits are
// checked when the call arrives. MaxHolds is checked again when the lock is granted; if it is
// exceeded, the lock is released. So one route has at most MaxHolds + MaxWaiting requests in its
// Locker, and cannot delay another route. Nested calls count separately.
type Router struct {
	routes  map[string]*lane
	lengths []int // the lengths of the prefixes, descending, without duplicates
}

type lane struct {
	Route
	mu             sync.Mutex
	waits, holding int // numbers of calls
}

// NewRouter returns a Router with these routes, or an error that names every mistake.
func NewRouter(routes ...Route) (*Router, error) {
	r := &Router{routes: map[string]*lane{}}
	var wrong mistakes
	if len(routes) == 0 {
		wrong.add("Route", "there is none")
	}
	for i, route := range routes {
		field := func(name string) string { return fmt.Sprintf("Route[%d].%s", i, name) }
		wrong.need(field("Locker"), route.Locker)
		if len(route.Prefix) > maxKeyBytes || route.Prefix != "" && checkKey(route.Prefix) != nil {
			wrong.add(field("Prefix"), "%q cannot begin a key", route.Prefix)
		}
		if r.routes[route.Prefix] != nil {
			wrong.add(field("Prefix"), "%q is listed twice", route.Prefix)
		}
		if route.MaxHolds < 1 {
			wrong.add(field("MaxHolds"), "%d is below 1", route.MaxHolds)
		}
		if route.MaxWaiting < 1 {
			wrong.add(field("MaxWaiting"), "%d is below 1", route.MaxWaiting)
		}
		r.routes[route.Prefix] = &lane{Route: route}
		r.lengths = append(r.lengths, len(route.Prefix))
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	slices.Sort(r.lengths)
	r.lengths = slices.Compact(r.lengths)
	slices.Reverse(r.lengths)
	return r, nil
}

// Do passes the call to the Locker of its route and returns the result of that Locker. If fn has
// not run, the error may also be a *LimitError, ErrNoRoute or mortise.ErrBadKey.
func (r *Router) Do(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error {
	if r.routes == nil {
		return unmade("Router")
	}
	if err := checkKey(key); err != nil {
		return err
	}
	l := r.lane(key)
	if l == nil {
		return fmt.Errorf("%w (lock %q)", ErrNoRoute, key)
	}
	if err := l.enter(key); err != nil {
		return err
	}
	holds := false // a hold counts until Do returns, because the lock is free only then
	defer func() { l.leave(holds) }()
	a := attempt{admit: func() error {
		err := l.grant(key)
		holds = err == nil
		return err
	}}
	_, err := a.do(ctx, l.Locker, key, fn)
	return err
}

func (r *Router) lane(key string) *lane {
	for _, n := range r.lengths {
		if n > len(key) {
			continue
		}
		if l := r.routes[key[:n]]; l != nil {
			return l
		}
	}
	return nil
}

func (l *lane) enter(key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.holding >= l.MaxHolds:
		return &LimitError{l.Prefix, "MaxHolds", l.MaxHolds, key}
	case l.waits >= l.MaxWaiting:
		return &LimitError{l.Prefix, "MaxWaiting", l.MaxWaiting, key}
	}
	l.waits++
	return nil
}

// grant counts a waiting call as holding. If MaxHolds is reached, it returns a *LimitError, and the
// call counts as waiting until it calls leave.
func (l *lane) grant(key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holding >= l.MaxHolds {
		return &LimitError{l.Prefix, "MaxHolds", l.MaxHolds, key}
	}
	l.waits--
	l.holding++
	return nil
}

func (l *lane) leave(holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if holds {
		l.holding--
	} else {
		l.waits--
	}
}
