package transport

import (
	"sync"
	"time"
)

// deadline is a deadline of a connection, with a channel that is closed when the deadline passes.
// The zero value never passes. A call that waits on the channel wakes if the deadline is moved into
// the past, and keeps waiting if the deadline is postponed.
type deadline struct {
	mu      sync.Mutex // guards all below
	timer   *time.Timer
	channel chan struct{}
	at      time.Time
}

func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current()
}

func (d *deadline) current() chan struct{} {
	if d.channel == nil {
		d.channel = make(chan struct{})
	}
	return d.channel
}

// set changes the deadline. The zero time removes the deadline.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = t
	if isClosed(d.current()) {
		d.channel = nil
	}
	if t.IsZero() {
		return
	}
	channel := d.current()
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { d.expire(t, channel) })
		return
	}
	close(channel)
}

func (d *deadline) expire(t time.Time, channel chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.Equal(t) && d.channel == channel && !isClosed(channel) {
		close(channel)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
