package transport

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/fair"
)

const (
	// maximum number of arriving calls of all instances; each can make this node hold up to
	// messageBytes; a question counts as two until its first message has arrived
	maxArrivals = 512
	// maximum number of arriving calls of one instance; enough for all questions of two connections
	arrivalsEach    = 256
	arrivalsDerived = maxArrivals - maxArrivals/4 // the same, for all derived secrets together
)

// arrivals holds the calls that are still arriving. A question is arriving until all of it has
// arrived, and any other call until its first message has arrived. There are limits for one
// instance, for one derived secret, for all derived secrets and for all instances. A call beyond
// one of them closes the connection of the oldest call that this limit counts. The type is safe
// for concurrent use.
type arrivals struct {
	each, secret, derived, limit int

	mu     sync.Mutex     // guards all below
	list   list.List      // of *accepted, the oldest first
	counts map[string]int // calls of each group that has a limit of its own
}

func newArrivals() arrivals {
	return arrivals{each: arrivalsEach, secret: arrivalsEach, derived: arrivalsDerived, limit: maxArrivals,
		counts: map[string]int{}}
}

const allDerived = "derived"

// groups returns the names of the groups to which a call belongs: its instance, its derived secret,
// and all derived secrets.
func groups(who fair.Identity) []string {
	all := []string{string(who.Instance[:])}
	if who.Secret != "" {
		all = append(all, "secret "+who.Secret, allDerived)
	}
	return all
}

// enter registers a call that begins to arrive on conn. When the call has arrived, the caller must
// call the returned function, which reports whether the call arrived in time. If it did not, the
// connection is closed.
func (a *arrivals) enter(conn *accepted, within time.Duration) (arrived func() bool) {
	a.mu.Lock()
	place := a.list.PushBack(conn)
	displaced := a.surplus(conn.owner)
	a.remove(displaced)
	a.mu.Unlock()
	if displaced != nil {
		displaced.Value.(*accepted).Close()
	}
	timer := time.AfterFunc(within, func() { conn.Close() })
	return func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.remove(place)
		return timer.Stop()
	}
}

// surplus counts a call of `who`, and returns the call that it displaces, or nil. The caller holds
// mu.
func (a *arrivals) surplus(who fair.Identity) *list.Element {
	full := ""
	limits := [...]int{a.each, a.secret, a.derived}
	for i, group := range groups(who) {
		if a.counts[group]++; full == "" && a.counts[group] > limits[i] {
			full = group
		}
	}
	if full == "" && a.list.Len() <= a.limit {
		return nil
	}
	e := a.list.Front()
	for full != "" && !slices.Contains(groups(e.Value.(*accepted).owner), full) {
		e = e.Next()
	}
	return e
}

// remove removes a call if it is in the list. The caller holds mu.
func (a *arrivals) remove(e *list.Element) {
	if e == nil {
		return
	}
	before := a.list.Len()
	if a.list.Remove(e); a.list.Len() == before {
		return
	}
	for _, group := range groups(e.Value.(*accepted).owner) {
		if a.counts[group]--; a.counts[group] == 0 {
			delete(a.counts, group)
		}
	}
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list.Len()
}
