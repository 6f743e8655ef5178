package transport

import (
	"container/list"
	"time"
)

// Limits of the dials of one port. In any second at most rate + burst dials of each class begin.
const (
	maxDials      = 8
	dialsOrdinary = 5 // highest number of dials in flight to ordinary addresses

	ordinaryRate, ordinaryBurst   = 16, 32 // dials per second, and dials in a burst
	preferredRate, preferredBurst = 32, 32

	maxPreferred = 16
)

type class uint8

const (
	preferred class = iota // dials to the addresses that were passed to Prefer
	ordinary
	classes
)

type ticket struct {
	addr    string
	ready   chan struct{} // closed when the dial may begin, or when err is set
	err     error         // why the dial may not begin
	class   class
	waiting *list.Element // its element in the line; nil if it is in no line
	trying  *pause
}

// places decides which dial begins next. The caller passes the time and holds the lock.
type places struct {
	lines [classes]list.List // elements are *ticket, in the order of arrival
	busy  [classes]int
	rates [classes]rate
}

func newPlaces() places {
	p := places{}
	p.rates[preferred] = rate{every: time.Second / preferredRate, burst: preferredBurst}
	p.rates[ordinary] = rate{every: time.Second / ordinaryRate, burst: ordinaryBurst}
	return p
}

func (p *places) enter(t *ticket) { t.waiting = p.lines[t.class].PushBack(t) }

func (p *places) leave(t *ticket) {
	p.lines[t.class].Remove(t.waiting)
	t.waiting = nil
}

// next removes and returns the next ticket whose dial may begin, or nil. If wait is not zero, the
// caller must call next again after this time, or when a dial ends if that is sooner.
func (p *places) next(now time.Time) (t *ticket, wait time.Duration) {
	for c := range classes {
		if p.lines[c].Len() == 0 || !p.room(c) {
			continue
		}
		pause := p.rates[c].wait(now)
		if pause <= 0 {
			t := p.lines[c].Front().Value.(*ticket)
			p.leave(t)
			return t, 0
		}
		if wait == 0 || pause < wait {
			wait = pause
		}
	}
	return nil, wait
}

func (p *places) room(c class) bool {
	if p.busy[preferred]+p.busy[ordinary] >= maxDials {
		return false
	}
	return c == preferred || p.busy[ordinary] < dialsOrdinary
}

func (p *places) begin(t *ticket, now time.Time) {
	p.busy[t.class]++
	p.rates[t.class].spend(now)
}

func (p *places) end(t *ticket) { p.busy[t.class]-- }

func (p *places) move(of func(addr string) class) {
	for c := range classes {
		for e := p.lines[c].Front(); e != nil; {
			t, next := e.Value.(*ticket), e.Next()
			if is := of(t.addr); is != c {
				p.leave(t)
				t.class = is
				p.enter(t)
			}
			e = next
		}
	}
}

type rate struct {
	every time.Duration
	burst int
	full  time.Time // when the whole burst is available
}

// wait returns the time until an event is allowed. Zero or less means now.
func (r *rate) wait(now time.Time) time.Duration {
	return max(0, r.full.Sub(now)) - time.Duration(r.burst-1)*r.every
}

func (r *rate) spend(now time.Time) {
	if r.full.Before(now) {
		r.full = now
	}
	r.full = r.full.Add(r.every)
}
