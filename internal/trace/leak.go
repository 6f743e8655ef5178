package trace

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/mortise-lock/mortise/session/client"
)

// This file finds locks that the program has forgotten. The session references a held lock, so the
// garbage collector never collects the lock. The caller therefore gets a separate handle, and only
// the caller references the handle.

// frames is the number of stack frames that are searched for the first caller outside package
// mortise.
const frames = 12

// Watch watches one handle. A nil Watch does nothing.
type Watch struct{ cleanup runtime.Cleanup }

// leak describes a handle. It must not reference the handle.
type leak struct {
	call *Call
	pcs  [frames]uintptr
	n    int
}

// FindsLeaks reports whether handles must be watched.
func (t *Tracer) FindsLeaks() bool { return t != nil && t.config.Hooks.Leaked != nil }

// WatchHandle calls Hooks.Leaked when the garbage collector finds handle unreachable, unless Stop
// was called or the lock of c is no longer held. c must not reference handle.
func WatchHandle[Handle any](handle *Handle, c *Call) *Watch {
	about := &leak{call: c}
	about.n = runtime.Callers(2, about.pcs[:])
	return &Watch{runtime.AddCleanup(handle, (*leak).found, about)}
}

// Stop ends the watch when the handle is released.
func (w *Watch) Stop() {
	if w != nil {
		w.cleanup.Stop()
	}
}

func (l *leak) found() {
	c := l.call
	if err := c.hold.Err(); err != nil && err != client.ErrInJeopardy {
		return
	}
	e := c.about(c.tracer.config.Clock.Now())
	e.End, e.Where = Leaked, l.where()
	c.tracer.queue.later(func() { c.tracer.config.Hooks.Leaked(e) })
}

func (l *leak) where() string {
	callers := runtime.CallersFrames(l.pcs[:l.n])
	for {
		frame, more := callers.Next()
		if !strings.Contains(frame.Function, "mortise-lock/mortise.(*") || !more {
			return fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File, frame.Line)
		}
	}
}
