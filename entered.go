package mortise

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/session/client"
)

// This file is what a request asks for that enters a lock again. MaxHold is the handle's own. All else belongs to the hold, which the group has
// granted on the terms of its first request.

// enterable returns why the hold of l cannot give what r asks for, or nil. A request that asks for nothing is content with what there is.
func (l *Lock) enterable(r *Request) error {
	t := client.Terms{}
	if had := l.hold.Request().Terms; had != nil {
		t.Value, t.Notice, t.Delay = had.Value, had.Notice, had.Delay
	}
	value, labels := showed(t.Value)
	field := ""
	switch {
	case r.LockDelay > t.Delay:
		field = "LockDelay"
	case r.Notice && !t.Notice:
		field = "Notice"
	case r.Value != "" && r.Value != value:
		field = "Value"
	case len(r.Labels) > 0 && !maps.Equal(r.Labels, labels):
		field = "Labels"
	}
	if field == "" {
		return nil
	}
	return &EnteredError{Key: l.Key(), Field: field, Token: l.Token()}
}

// EnteredError says that a lock cannot be entered again for a request that asks for more than the hold has. errors.Is reports it as ErrBadRequest.
type EnteredError struct {
	Key   string
	Field string // of Request
	Token Token  // of the hold
}

func (e *EnteredError) Error() string {
	return fmt.Sprintf("%v: Request.%s: lock %q is entered again under its own context, and its first request asked for another %s: set it there, or leave it out here",
		ErrBadRequest, e.Field, plain.Text(e.Key), e.Field)
}

// Is makes errors.Is(err, ErrBadRequest) true.
func (e *EnteredError) Is(target error) bool { return target == ErrBadRequest }

// handleLimit is what a handle has whose request has a MaxHold.
type handleLimit struct {
	until clock.Time
	text  string        // why it is over then
	done  chan struct{} // closed when the handle is over, or the hold
}

// limitTo gives a new handle an end of its own.
func (l *Lock) limitTo(longest time.Duration) {
	if longest == 0 {
		return
	}
	n := l.node
	l.limit = &handleLimit{
		until: n.engine.Now().Add(longest), done: make(chan struct{}),
		text: fmt.Sprintf("it was entered again for %v, the longest that this request allows, and was not unlocked", longest),
	}
	if !n.engine.Spawn(l.watchLimit) {
		close(l.limit.done) // the node is closed, and so is the hold
	}
}

// watchLimit ends a handle whose time is over. It ends with the hold.
func (l *Lock) watchLimit() {
	defer close(l.limit.done)
	hold := l.first().hold.Done()
	for {
		timer := time.NewTimer(l.limit.until.Sub(l.node.engine.Now()))
		select {
		case <-hold:
			timer.Stop()
			return
		case <-timer.C:
		}
		switch {
		case l.endOverdue():
			return
		case l.exited.Load() != 0:
			<-hold // the handle was unlocked in time: like others it is told of the end of the lock
			return
		}
	}
}

// pastLimit reports whether the handle's time is over, by the clock.
func (l *Lock) pastLimit() bool {
	return l.limit != nil && !l.node.engine.Now().Before(l.limit.until)
}

// endOverdue ends a handle whose time is over and that was not unlocked before, and reports whether it ended so, now or earlier. The code under it may run
// on. So if it was the last one, the hold lapses, and stays for its delay.
func (l *Lock) endOverdue() bool {
	if !l.pastLimit() {
		return false
	}
	left, first := l.exitAs(handleIsOverdue)
	if first {
		_ = l.releaseHold(context.Background(), mode{way: trace.Lapse, why: l.limit.text}, left, first)
	}
	return l.exited.Load() == handleIsOverdue
}
