package mortise

import (
	"fmt"
	"runtime"
	"strings"
)

// This file finds locks that the program has forgotten. The Lock that was granted is reachable from the session for as long as it is held, so the
// garbage collector never sees it go. What the caller gets instead is another handle of it, which nothing but the caller knows.

// frames is how many callers are looked at for one that is not of this package.
const frames = 12

// leak is what is known about a handle without holding it.
type leak struct {
	lock *Lock // the first handle
	pcs  [frames]uintptr
	n    int
}

// leakable returns l, or a handle of it that can be found to be forgotten if a hook wants to hear of that.
func (n *Node) leakable(l *Lock) *Lock {
	if n.teller.hooks.Leaked == nil {
		return l
	}
	if l.again == nil {
		l = &Lock{node: n, again: l}
	}
	about := &leak{lock: l.again}
	about.n = runtime.Callers(3, about.pcs[:])
	cleanup := runtime.AddCleanup(l, leaked, about)
	l.hooked = &hooked{cleanup: &cleanup}
	return l
}

// found ends the watch over a handle that is unlocked.
func (l *Lock) found() {
	if l.hooked != nil && l.hooked.cleanup != nil {
		l.hooked.cleanup.Stop()
	}
}

// leaked is called when a handle is gone that was not unlocked.
func leaked(about *leak) {
	f := about.lock
	n, w := f.node, f.hooked
	if f.hold.Err() != nil {
		return // it was lost before, and nobody has to unlock it
	}
	e := w.about(LockEvent{Outcome: OutcomeLeaked}, n.env.clock.Now())
	e.Where = about.where()
	n.teller.later(func() { n.teller.hooks.Leaked(e) })
}

// where is the first caller outside this package.
func (l *leak) where() string {
	callers := runtime.CallersFrames(l.pcs[:l.n])
	for {
		frame, more := callers.Next()
		if !strings.Contains(frame.Function, "mortise-lock/mortise.(*Node)") || !more {
			return fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File, frame.Line)
		}
	}
}
