package trace

import (
	"fmt"
	"runtime"
	"strings"
)

// This file finds locks that the program has forgotten. The lock that was granted is reachable from
// the session for as long as it is held, so the garbage collector never sees it go. What the caller
// gets instead is another handle of it, which nothing but the caller knows.

// frames is how many callers are looked at for one that is not of package mortise.
const frames = 12

// Watch looks after one handle. A nil Watch looks after none.
type Watch struct{ cleanup runtime.Cleanup }

// leak is what is known about a handle without holding it.
type leak struct {
	call *Call
	pcs  [frames]uintptr
	n    int
}

// FindsLeaks reports whether handles are to be watched.
func (t *Tracer) FindsLeaks() bool { return t != nil && t.config.Hooks.Leaked != nil }

// WatchHandle calls Hooks.Leaked if the garbage collector finds that handle is gone before Stop,
// while the lock of c is held. No reference may lead from c to handle.
func WatchHandle[Handle any](handle *Handle, c *Call) *Watch {
	about := &leak{call: c}
	about.n = runtime.Callers(2, about.pcs[:])
	return &Watch{runtime.AddCleanup(handle, (*leak).found, about)}
}

// Stop ends the watch over a handle that is let go of.
func (w *Watch) Stop() {
	if w != nil {
		w.cleanup.Stop()
	}
}

// found is called when a handle is gone that was not let go of.
func (l *leak) found() {
	c := l.call
	if c.hold.Err() != nil {
		return // the lock was lost before, so there is nothing to let go of
	}
	e := c.about(c.tracer.config.Clock.Now())
	e.End, e.Where = Leaked, l.where()
	c.tracer.queue.later(func() { c.tracer.config.Hooks.Leaked(e) })
}

// where is the first caller that is no method of package mortise.
func (l *leak) where() string {
	callers := runtime.CallersFrames(l.pcs[:l.n])
	for {
		frame, more := callers.Next()
		if !strings.Contains(frame.Function, "mortise-lock/mortise.(*") || !more {
			return fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File, frame.Line)
		}
	}
}
