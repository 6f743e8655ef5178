package client

import "github.com/mortise-lock/mortise/internal/clock"

// This file lets one hold have several handles, each with an end and a Done of its own.

// Part is one of several handles of a hold, with a Done of its own.
type Part struct {
	hold *Hold
	next *Part         // of the hold's list
	done chan struct{} // nil until Done is called; guarded by Hold.mu, as is over
	over bool
}

// Share prepares a hold for several handles. From then on the hold has no limit, and the returned
// part, which gets the channel of the earlier calls of Done, is the first handle's. The caller ends
// the first handle at the time until, for the reason why. Zero means that it need not. Share
// reports false if the hold has already reached its limit. Only the first call returns a part.
func (h *Hold) Share() (first *Part, until clock.Time, why string, ok bool) {
	if until = h.limit().time(); until == 0 {
		return nil, 0, "", true
	}
	if !h.limit().lift() {
		return nil, 0, "", false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rarely()
	first = &Part{hold: h, next: r.parts, done: r.done}
	r.done, r.parts = nil, first
	return first, until, h.req.overdue(), true
}

// Part returns a further handle of the hold.
func (h *Hold) Part() *Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rarely()
	r.parts = &Part{hold: h, next: r.parts}
	return r.parts
}

// Done is [Hold.Done], except that the channel is also closed by End.
func (p *Part) Done() <-chan struct{} {
	p.hold.mu.Lock()
	defer p.hold.mu.Unlock()
	return opened(&p.done, p.over || p.hold.over.Load())
}

// End closes the channel of Done, which stays closed.
func (p *Part) End() {
	p.hold.mu.Lock()
	defer p.hold.mu.Unlock()
	if p.over = true; !p.hold.over.Load() {
		shut(p.done)
	}
}

// opened returns the channel of a Done, and makes it if there is none.
func opened(done *chan struct{}, closed bool) chan struct{} {
	if *done == nil {
		*done = make(chan struct{})
		if closed {
			close(*done)
		}
	}
	return *done
}

func shut(done chan struct{}) {
	if done != nil {
		close(done)
	}
}

// shutAll closes the channels of Done when the hold ends or a doubt begins. The caller holds mu.
func (h *Hold) shutAll() {
	if h.rare == nil {
		return
	}
	shut(h.rare.done)
	for p := h.rare.parts; p != nil; p = p.next {
		if !p.over {
			shut(p.done)
		}
	}
}

// renewAll makes the next calls of Done return new channels. The caller holds mu.
func (h *Hold) renewAll() {
	r := h.rarely()
	r.done = nil
	for p := r.parts; p != nil; p = p.next {
		if !p.over {
			p.done = nil
		}
	}
}
