package transport

import (
	"container/list"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	// limit of the pause after the first failure; doubled after each further one
	pauseFirst = 250 * time.Millisecond
	maxPause   = 30 * time.Second
	// limit of the pauses of a node without a group: founders that were cut off must reconnect soon
	pauseNewborn   = 5 * time.Second
	pauseAnswered  = 500 * time.Millisecond // pause limit after an answered dial, because the answer may soon change
	preferredFirst = 50 * time.Millisecond
	preferredLast  = 500 * time.Millisecond // voters without a leader must connect soon

	pauseKept = 10 * time.Second // how long a failure is remembered after its pause
	maxPauses = 1024
	youngLink = time.Second // a link that ends sooner counts as a failed dial
)

// pauseKey identifies what must not be dialed: an address, or one intended instance at an address.
// It names the instance only if an instance of the cluster has answered at the address.
type pauseKey struct {
	addr string
	of   nodeid.ID // zero means any
}

type pause struct {
	key    pauseKey
	err    error
	delay  time.Duration
	until  time.Time
	trying bool          // the first dial after the pause is in flight
	over   chan struct{} // closed when the pause ends early or is replaced, or its dial has ended
	place  *list.Element
}

// pauses holds the pauses of a port. The caller passes the time and holds the lock.
type pauses struct {
	known map[pauseKey]*pause
	order list.List // elements are *pause, the oldest first
}

func (p *pauses) in(key pauseKey, now time.Time) *pause {
	if b := p.known[key]; b != nil && (b.trying || now.Before(b.until)) {
		return b
	}
	return nil
}

// failed begins a pause for key. If the previous pause ended recently, the limit of the new pause
// is twice as high. random must be uniformly distributed.
func (p *pauses) failed(key pauseKey, err error, first, most time.Duration, now time.Time, random uint64) {
	b := &pause{key: key, err: err, delay: min(first, most), over: make(chan struct{})}
	if old := p.known[key]; old != nil {
		if now.Before(old.until.Add(pauseKept)) {
			b.delay = min(2*old.delay, most)
		}
		p.end(key)
	}
	b.until = now.Add(1 + time.Duration(random%uint64(b.delay)))
	for e := p.order.Front(); e != nil; e = p.order.Front() {
		oldest := e.Value.(*pause)
		if p.order.Len() < maxPauses && now.Before(oldest.until.Add(pauseKept)) {
			break
		}
		p.end(oldest.key)
	}
	b.place = p.order.PushBack(b)
	p.known[key] = b
}

func (p *pauses) end(key pauseKey) {
	if b := p.known[key]; b != nil {
		delete(p.known, key)
		p.order.Remove(b.place)
		close(b.over)
	}
}

func (p *pauses) shorten(addr string, most time.Duration, now time.Time, random uint64) {
	for _, b := range p.known {
		if b.key.addr == addr && b.until.After(now.Add(most)) {
			b.until, b.delay = now.Add(1+time.Duration(random%uint64(most))), most
			b.again()
		}
	}
}

func (b *pause) again() {
	close(b.over)
	b.over = make(chan struct{})
}

func (p *pauses) remembered(now time.Time) (n int) {
	for _, b := range p.known {
		if now.Before(b.until.Add(pauseKept)) {
			n++
		}
	}
	return n
}

// pausedError means that an address is not dialed now. It matches ErrSilent, because the error of
// the last dial proves nothing about the present.
type pausedError struct {
	addr string
	last error
}

func (e *pausedError) Error() string {
	return fmt.Sprintf("%v: %s is not dialed now, since the last dial failed a moment ago: %v", ErrSilent, e.addr, e.last)
}

// Is makes errors.Is(err, ErrSilent) true. ErrPlain, ErrSecured and ErrNoRoute of the last dial
// also match, because they prove nothing either.
func (e *pausedError) Is(target error) bool {
	reason := target == ErrPlain || target == ErrSecured || target == ErrNoRoute
	return target == ErrSilent || errors.Is(e.last, target) && reason
}

// As finds the error number of the last dial, for texts.
func (e *pausedError) As(target any) bool {
	_, number := target.(*syscall.Errno)
	return number && errors.As(e.last, target)
}

// ErrNoRoute means that this machine has no address or no route for an address. It counts as
// silence, because other machines may reach the address.
var ErrNoRoute = errors.New("transport: this machine has no address or route for it")

func noRoute(err error) bool {
	for _, number := range [...]syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.EADDRNOTAVAIL,
		syscall.EAFNOSUPPORT} {
		if errors.Is(err, number) {
			return true
		}
	}
	return false
}

func answered(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrForeign) || errors.Is(err, ErrVersion) ||
		errors.Is(err, ErrRules)
}

// ofLink reports whether a failure concerns only the intended instance, and not the address. This
// is so if an instance of the cluster answered at the address.
func ofLink(err error) bool {
	for _, kind := range [...]error{ErrOther, ErrCopy, ErrNoLink, ErrGroup} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
