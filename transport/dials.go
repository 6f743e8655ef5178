package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// dials is the queue of all dials of a port, with the pauses of addresses. It is safe for
// concurrent use.
type dials struct {
	random  func([]byte)
	newborn func() bool

	mu        sync.Mutex // guards all below; never held across a wait
	places    places
	pauses    pauses
	preferred map[string]bool
	timer     *time.Timer // calls grant; nil if not needed
	closed    bool
}

func newDials(random func([]byte), newborn func() bool) *dials {
	return &dials{random: random, newborn: newborn, places: newPlaces(), pauses: pauses{known: map[pauseKey]*pause{}}}
}

func (d *dials) prefer(addrs []string) {
	words := make([]uint64, len(addrs))
	for i := range words {
		words[i] = d.word()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.preferred
	d.preferred = make(map[string]bool, len(addrs))
	for i, addr := range addrs {
		d.preferred[addr] = true
		if !before[addr] {
			d.pauses.shorten(addr, preferredLast, time.Now(), words[i])
		}
	}
	d.places.move(d.classOf)
	d.grant()
}

func (d *dials) classOf(addr string) class {
	if d.preferred[addr] {
		return preferred
	}
	return ordinary
}

// word returns a random number. Config.Random may be slow, so the caller must not hold mu.
func (d *dials) word() uint64 {
	var b [8]byte
	d.random(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// enter waits until a dial to an address may begin. If the address or the intended instance at the
// address pauses, enter fails immediately with a pausedError. After a nil error the caller must
// call leave.
func (d *dials) enter(ctx context.Context, addr string, of nodeid.ID) (*ticket, error) {
	d.mu.Lock()
	if err := d.pausedHere(addr, of); err != nil {
		d.mu.Unlock()
		return nil, err
	}
	t := &ticket{addr: addr, ready: make(chan struct{}), class: d.classOf(addr)}
	d.places.enter(t)
	d.grant()
	d.mu.Unlock()
	select {
	case <-t.ready:
		return t, t.err
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.waiting == nil {
		return t, t.err // the dial was allowed just when ctx ended
	}
	d.places.leave(t)
	return nil, fmt.Errorf("%w: %s: the dial waited too long in the queue: %w", ErrSilent, addr, context.Cause(ctx))
}

// grant starts every waiting dial that may begin. The caller holds mu.
func (d *dials) grant() {
	for !d.closed {
		now := time.Now()
		t, wait := d.places.next(now)
		if t == nil {
			d.arm(wait)
			return
		}
		if t.err = d.pausedHere(t.addr, nodeid.ID{}); t.err == nil { // another dial may have failed meanwhile
			if b := d.pauses.known[pauseKey{addr: t.addr}]; b != nil {
				b.trying, t.trying = true, b
			}
			d.places.begin(t, now)
		}
		close(t.ready)
	}
}

// arm starts a timer that calls grant. The caller holds mu.
func (d *dials) arm(wait time.Duration) {
	if wait <= 0 || d.timer != nil {
		return
	}
	d.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.timer = nil
		d.grant()
	})
}

// leave ends a dial. known is false if err proves nothing about the address.
func (d *dials) leave(t *ticket, of nodeid.ID, err error, known bool) {
	word := d.word()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places.end(t)
	if b := t.trying; b != nil && d.pauses.known[b.key] == b {
		b.trying = false
		b.again()
	}
	switch {
	case !known:
	case err == nil:
		d.pauses.end(pauseKey{addr: t.addr})
	case ofLink(err):
		d.pauses.end(pauseKey{addr: t.addr})
		d.failed(pauseKey{t.addr, of}, err, word)
	default:
		d.failed(pauseKey{addr: t.addr}, err, word)
	}
	d.grant()
}

func (d *dials) failed(key pauseKey, err error, word uint64) {
	if d.closed {
		return
	}
	first, most := pauseFirst, maxPause
	switch {
	case d.preferred[key.addr]:
		first, most = preferredFirst, preferredLast
	case d.newborn():
		most = pauseNewborn
	}
	if answered(err) {
		most = min(most, pauseAnswered)
	}
	d.pauses.failed(key, err, first, most, time.Now(), word)
}

func (d *dials) paused(addr string, of nodeid.ID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pausedHere(addr, of)
}

func (d *dials) pausedHere(addr string, of nodeid.ID) error {
	now := time.Now()
	b := d.pauses.in(pauseKey{addr: addr}, now)
	if b == nil && !of.IsZero() {
		b = d.pauses.in(pauseKey{addr, of}, now)
	}
	if b == nil {
		return nil
	}
	return &pausedError{addr, b.err}
}

func (d *dials) await(ctx context.Context, addr string) error {
	d.mu.Lock()
	b := d.pauses.in(pauseKey{addr: addr}, time.Now())
	if b == nil {
		d.mu.Unlock()
		return nil
	}
	paused, until, over := &pausedError{addr, b.err}, b.until, b.over
	var expired <-chan time.Time
	if !b.trying {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		expired = timer.C
	}
	d.mu.Unlock()
	if by, ok := ctx.Deadline(); ok && expired != nil && by.Before(until) {
		return paused
	}
	select {
	case <-expired:
	case <-over:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", paused, context.Cause(ctx))
	}
	return nil
}

func (d *dials) reached(addr string) {
	if addr == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pauses.end(pauseKey{addr: addr})
}

// linked must be called when a dialed link has ended. If the link was young, which means that it
// lasted less than youngLink, this counts as a failed dial of the instance. Otherwise the
// instance's pause ends.
func (d *dials) linked(addr string, of nodeid.ID, young bool, err error) {
	word := d.word()
	d.mu.Lock()
	defer d.mu.Unlock()
	if young {
		d.failed(pauseKey{addr, of}, err, word)
		return
	}
	d.pauses.end(pauseKey{addr, of})
}

// forget ends all pauses. If shut is true, no dial begins afterwards.
func (d *dials) forget(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.pauses.known {
		d.pauses.end(key)
	}
	if d.closed = d.closed || shut; d.closed && d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (d *dials) remembered() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pauses.remembered(time.Now())
}

// attempt calls dial when the queue allows it. The context `wait` limits the time in the queue,
// and ctx limits the dial. A zero instance means any instance.
func (p *base) attempt(wait, ctx context.Context, addr string, of nodeid.ID, dial func() error) error {
	t, err := p.dials.enter(wait, addr, of)
	if err != nil {
		return err
	}
	err = dial()
	known := err == nil || ctx.Err() == nil && !errors.Is(err, errAbandoned)
	p.dials.leave(t, of, err, known)
	return err
}

// errAbandoned means that the link has another stream or is no longer wanted.
var errAbandoned = errors.New("transport: dial abandoned")
