package transport

import (
	"container/list"
	"sync"
	"time"
)

// arrivalsMost is how many calls may be arriving at a time: calls of which the first message, or
// the whole question, has not come yet. Each of them makes this node hold up to messageBytes.
const arrivalsMost = 512

// arrivals are the calls that are arriving, over all connections. An honest one has arrived after
// milliseconds. When there are too many, the connection of the oldest is closed, so that a flood of
// unfinished calls displaces itself. It is safe for concurrent use.
type arrivals struct {
	most int

	mu   sync.Mutex // guards all below
	list list.List  // of *accepted, the oldest first
}

// enter notes a call that begins to arrive on conn, which is closed unless the returned function is
// called within the given time. The function reports whether it came in time. It must be called.
func (a *arrivals) enter(conn *accepted, within time.Duration) (arrived func() bool) {
	if bug("calls-arrive-forever") {
		return func() bool { return true }
	}
	a.mu.Lock()
	place := a.list.PushBack(conn)
	var oldest *accepted
	if a.list.Len() > a.most {
		oldest = a.list.Remove(a.list.Front()).(*accepted)
	}
	a.mu.Unlock()
	if oldest != nil {
		oldest.Close()
	}
	timer := time.AfterFunc(within, func() { conn.Close() })
	return func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.list.Remove(place) // nothing if it was displaced: the list knows its own
		return timer.Stop()
	}
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list.Len()
}
