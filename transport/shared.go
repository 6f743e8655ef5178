package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	sharedIdle  = 10 * time.Second
	sharedCheck = 5 * time.Second
)

// pool holds the connections of a port for questions and gossip, one for each address. It uses
// base.mu.
type pool struct {
	*base
	shared map[string]*shared
}

// shared is a connection to an address, for gossip and questions. One goroutine dials it, waits
// until it is dead or has been unused for sharedIdle, and closes it.
type shared struct {
	addr   string
	self   *Self           // this node's identity on the connection
	life   context.Context // ends when the incarnation that dials ends
	turn   context.Context // ends if all callers give up before the dial has begun
	giveUp context.CancelFunc
	ready  chan struct{} // closed when the dial has succeeded or failed
	d      *dialed       // set before ready is closed; nil if the dial failed
	err    error

	// Guarded by port.mu:
	begun bool
	users int
	used  time.Time
}

// borrow returns a live connection to addr, and dials it if necessary. The caller must call
// release. Concurrent callers share a dial, which does not depend on their contexts. If borrow
// returns ErrRefused, ErrForeign or ErrVersion, this is the result of a dial that began after the
// caller called borrow.
func (p *pool) borrow(ctx context.Context, addr string) (*shared, error) {
	for {
		s, first, err := p.sharedFor(addr)
		if s != nil {
			select {
			case <-s.ready:
				err = s.err
			case <-ctx.Done():
				err = fmt.Errorf("%w: %s: %w", ErrSilent, addr, context.Cause(ctx))
			}
			if err == nil && s.life.Err() != nil {
				err = p.outlived(addr)
			}
			if err == nil {
				return s, nil
			}
			p.release(s)
		}
		_, paused := errors.AsType[*pausedError](err)
		if !paused && (first || !answered(err)) {
			return nil, err
		}
		if err := p.dials.await(ctx, addr); err != nil {
			return nil, err
		}
	}
}

func (p *pool) outlived(addr string) error {
	if p.ctx.Err() != nil {
		return ErrClosed
	}
	return fmt.Errorf("%w: %s: this node has begun a new incarnation", ErrSilent, addr)
}

func (p *pool) release(s *shared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	s.used = time.Now()
	if s.users == 0 && !s.begun {
		s.giveUp()
		p.remove(s)
	}
}

// sharedFor counts the caller among the users of the connection, even if the connection is not
// dialed yet. first is true if the dial has not begun. During a pause, sharedFor may return a
// pausedError.
func (p *pool) sharedFor(addr string) (_ *shared, first bool, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return nil, false, ErrClosed
	}
	s, self := p.shared[addr], p.self.Load()
	if s != nil && (s.d != nil && isClosed(s.d.probe.gone) || s.self != self) {
		s = nil // the goroutine of s will close the connection
	}
	if s == nil {
		if err := p.dials.paused(addr, nodeid.ID{}); err != nil {
			return nil, false, err
		}
		if len(p.shared) >= p.config.AskConns && !p.evict() {
			return nil, false, fmt.Errorf("%w: %d connections are in use", ErrFull, len(p.shared))
		}
		s = &shared{addr: addr, self: self, life: p.life, ready: make(chan struct{})}
		s.turn, s.giveUp = context.WithCancel(s.life)
		p.shared[addr] = s
		p.tasks.Go(func() { p.keep(s) })
	}
	s.users++
	s.used = time.Now()
	return s, !s.begun, nil
}

// evict closes the least recently used connection without users, if there is one. The caller holds
// mu.
func (p *pool) evict() bool {
	var oldest *shared
	for _, s := range p.shared {
		if s.users == 0 && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	delete(p.shared, oldest.addr) // so that the goroutine of oldest closes the connection
	if oldest.d != nil {
		oldest.d.kill()
	}
	return true
}

func (p *pool) keep(s *shared) {
	defer s.giveUp()
	var d *dialed
	err := p.attempt(s.turn, s.life, s.addr, nodeid.ID{}, func() (err error) {
		if !p.begin(s) {
			return errAbandoned
		}
		d, err = p.connect(s.life, s.self, s.addr, nodeid.ID{})
		return err
	})
	p.mu.Lock()
	s.d, s.err = d, err
	if err != nil {
		p.remove(s)
	}
	p.mu.Unlock()
	close(s.ready)
	if err != nil {
		return
	}
	defer d.close()
	ticker := time.NewTicker(sharedCheck)
	defer ticker.Stop()
	for p.wanted(s) {
		select {
		case <-d.probe.gone:
		case <-s.life.Done():
			p.forget(s)
			return
		case <-ticker.C:
		}
	}
}

func (p *pool) wanted(s *shared) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	dead := isClosed(s.d.probe.gone)
	if p.shared[s.addr] == s {
		if !dead && (s.users > 0 || time.Since(s.used) < sharedIdle) {
			return true
		}
		delete(p.shared, s.addr)
	}
	return !dead && s.users > 0
}

func (p *pool) begin(s *shared) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.begun = s.users > 0
	return s.begun
}

func (p *pool) forget(s *shared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(s)
}

// remove removes s from the table. The caller holds mu.
func (p *pool) remove(s *shared) {
	if p.shared[s.addr] == s {
		delete(p.shared, s.addr)
	}
}
