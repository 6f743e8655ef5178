package transport

import (
	"container/list"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	// maximum number of arriving calls of all instances; each can make this node hold up to
	// messageBytes; a question counts as two until its first message has arrived
	maxArrivals = 512
	// maximum number of arriving calls of one instance; enough for all questions of two connections
	arrivalsEach = 256
)

// arrivals holds the calls that are still arriving. A question is arriving until all of it has
// arrived, and any other call until its first message has arrived. If one instance or all instances
// together have too many, the connection of the oldest call is closed. The type is safe for
// concurrent use.
type arrivals struct {
	each, limit int

	mu   sync.Mutex        // guards all below
	list list.List         // of *accepted, the oldest first
	of   map[nodeid.ID]int // calls of each instance
}

// enter registers a call that begins to arrive on conn. When the call has arrived, the caller must
// call the returned function, which reports whether the call arrived in time. If it did not, the
// connection is closed.
func (a *arrivals) enter(conn *accepted, within time.Duration) (arrived func() bool) {
	a.mu.Lock()
	place := a.list.PushBack(conn)
	a.of[conn.owner]++
	var displaced *list.Element
	switch {
	case a.of[conn.owner] > a.each:
		for displaced = a.list.Front(); displaced.Value.(*accepted).owner != conn.owner; {
			displaced = displaced.Next()
		}
	case a.list.Len() > a.limit:
		displaced = a.list.Front()
	}
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

// remove removes a call if it is in the list. The caller holds mu.
func (a *arrivals) remove(e *list.Element) {
	if e == nil {
		return
	}
	before := a.list.Len()
	if a.list.Remove(e); a.list.Len() == before {
		return
	}
	owner := e.Value.(*accepted).owner
	if a.of[owner]--; a.of[owner] == 0 {
		delete(a.of, owner)
	}
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list.Len()
}
