package trace

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

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

// leaks are the handles that the garbage collector has found since they were last reported. The
// collector's goroutine only adds to them. It must not use the client, its clock or a hook, which
// may belong to a testing/synctest bubble: a process that touches a bubble from outside is killed.
type leaks struct {
	mu    sync.Mutex // guards found; never held across a wait
	found []*leak
}

func (l *leaks) add(one *leak) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = append(l.found, one)
}

func (l *leaks) drain() []*leak {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.found
	l.found = nil
	return found
}

// ReportLeaks queues a call of Hooks.Leaked for each leak that was found since the last call. A
// goroutine of the node must call it now and then.
func (t *Tracer) ReportLeaks() {
	if !t.FindsLeaks() {
		return
	}
	for _, l := range t.leaks.drain() {
		t.queue.later(l.report)
	}
}

// WatchHandle makes ReportLeaks report the handle when the garbage collector has found it
// unreachable, unless Stop was called or the lock of c is no longer held. c must not reference
// handle.
func WatchHandle[Handle any](handle *Handle, c *Call) *Watch {
	about := &leak{call: c}
	about.n = runtime.Callers(2, about.pcs[:])
	return &Watch{runtime.AddCleanup(handle, c.tracer.leaks.add, about)}
}

// Stop ends the watch when the handle is released.
func (w *Watch) Stop() {
	if w != nil {
		w.cleanup.Stop()
	}
}

func (l *leak) report() {
	c := l.call
	if err := c.hold.Err(); err != nil && err != client.ErrInJeopardy {
		return
	}
	e := c.about(c.tracer.config.Clock.Now())
	e.End, e.Where = Leaked, l.where()
	c.tracer.config.Hooks.Leaked(e)
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
