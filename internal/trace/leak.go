package trace

import (
	"fmt"
	"runtime"
	"strings"
)

// This file finds locks that the program has forgotten. A granted lock is reachable from the
// session while it is held, so the garbage collector never collects it. Therefore the caller gets
// another handle of it, which only the caller references.

// frames is how many callers are searched for one outside package mortise.
const frames = 12

// Watch watches one handle. A nil Watch watches none.
type Watch struct{ cleanup runtime.Cleanup }

// leak describes a handle without a reference to it.
type leak struct {
	call *Call
	pcs  [frames]uintptr
	n    int
}

// FindsLeaks reports whether handles must be watched.
func (t *Tracer) FindsLeaks() bool { return t != nil && t.config.Hooks.Leaked != nil }

// WatchHandle calls Hooks.Leaked if the garbage collector finds before Stop that handle is
// unreachable while the lock of c is held. c must not reference handle.
func WatchHandle[Handle any](handle *Handle, c *Call) *Watch {
	about := &leak{call: c}
	about.n = runtime.Callers(2, about.pcs[:])
	return &Watch{runtime.AddCleanup(handle, (*leak).found, about)}
}

// Stop ends the watch of a handle that is released.
func (w *Watch) Stop() {
	if w != nil {
		w.cleanup.Stop()
	}
}

func (l *leak) found() {
	c := l.call
	if c.hold.Err() != nil {
		return // the lock was lost before, so there is nothing to release
	}
	e := c.about(c.tracer.config.Clock.Now())
	e.End, e.Where = Leaked, l.where()
	c.tracer.queue.later(func() { c.tracer.config.Hooks.Leaked(e) })
}

// where returns the first caller that is no method of package mortise.
func (l *leak) where() string {
	callers := runtime.CallersFrames(l.pcs[:l.n])
	for {
		frame, more := callers.Next()
		if !strings.Contains(frame.Function, "mortise-lock/mortise.(*") || !more {
			return fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File, frame.Line)
		}
	}
}
