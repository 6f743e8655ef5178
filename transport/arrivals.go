package transport

import (
	"container/list"
	"sync"
	"time"
)

const (
	// arrivalsMost is how many calls may be arriving at a time: calls of which the first message,
	// or the whole question, has not come yet. Each of them makes this node hold up to
	// messageBytes. A question counts twice until its first message has come.
	arrivalsMost = 512
	// arrivalsEach is the part of one instance. It is twice what fits on one connection.
	arrivalsEach = 256
)

// arrivals are the calls that are arriving, over all connections. An honest one has arrived after
// milliseconds. When an instance has too many, the connection of its oldest is closed, and when
// there are too many in all, that of the oldest, so that a flood of unfinished calls displaces
// itself. It is safe for concurrent use.
type arrivals struct {
	each, most int

	mu   sync.Mutex       // guards all below
	list list.List        // of *accepted, the oldest first
	of   map[Instance]int // how many of the list are on connections of an instance
}

// enter notes a call that begins to arrive on conn, which is closed unless the returned function is
// called within the given time. The function reports whether it came in time. It must be called.
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
	case a.list.Len() > a.most:
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

// remove takes a call out, if it is still there. The caller holds mu.
func (a *arrivals) remove(e *list.Element) {
	if e == nil {
		return
	}
	before := a.list.Len()
	if a.list.Remove(e); a.list.Len() == before {
		return // it was displaced: the list knows its own
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
