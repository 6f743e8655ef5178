package transport

import (
	"context"
	"fmt"
	"time"
)

const (
	sharedIdle  = time.Minute
	sharedCheck = 15 * time.Second
)

// shared is a connection to an address, used by questions and gossip, whoever is there. One goroutine owns it: dials, waits for its
// death or for a minute of disuse, closes.
type shared struct {
	addr  string
	self  *Self           // what we say on it
	life  context.Context // ends with our life in which it was dialed
	ready chan struct{}   // closed when dialed or failed
	d     *dialed         // set before ready is closed; nil: failed
	err   error

	// Guarded by port.mu:
	users int
	used  time.Time
}

// borrow returns a living connection to addr, dialed if need be; give it back with release. Callers share a dial under way, whose
// outcome is not tied to the context of any one of them.
func (p *Port) borrow(ctx context.Context, addr string) (*shared, error) {
	s, err := p.sharedFor(addr)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		p.release(s)
		return nil, fmt.Errorf("%w: %s: %w", ErrSilent, addr, context.Cause(ctx))
	}
	err = s.err
	if err == nil && s.life.Err() != nil {
		err = p.outlived(addr)
	}
	if err != nil {
		p.release(s)
		return nil, err
	}
	return s, nil
}

// outlived is the error of a call that began before this node's life or the port ended.
func (p *Port) outlived(addr string) error {
	if p.ctx.Err() != nil {
		return ErrClosed
	}
	return fmt.Errorf("%w: %s: this node has begun a new life", ErrSilent, addr)
}

func (p *Port) release(s *shared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	s.used = time.Now()
}

func (p *Port) sharedFor(addr string) (*shared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return nil, ErrClosed
	}
	s, self := p.shared[addr], p.self.Load()
	if s != nil && (s.d != nil && isClosed(s.d.probe.gone) || s.self != self && !bug("connections-outlive-a-life")) {
		s = nil // dead, or it says what is no longer true: its goroutine will notice
	}
	if s == nil {
		if len(p.shared) >= p.config.AskConns && !p.evict() {
			return nil, fmt.Errorf("%w: %d connections are in use", ErrFull, len(p.shared))
		}
		s = &shared{addr: addr, self: self, life: p.life, ready: make(chan struct{})}
		p.shared[addr] = s
		p.tasks.Go(func() { p.keep(s) })
	}
	s.users++
	s.used = time.Now()
	return s, nil
}

// evict gives up the connection that was used longest ago and is not in use. The caller holds mu.
func (p *Port) evict() bool {
	var oldest *shared
	for _, s := range p.shared {
		if s.users == 0 && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	delete(p.shared, oldest.addr) // keep sees it
	if oldest.d != nil {
		oldest.d.kill()
	}
	return true
}

// keep is the goroutine of s.
func (p *Port) keep(s *shared) {
	d, err := p.connect(s.life, s.self, s.addr, Instance{})
	p.mu.Lock()
	s.d, s.err = d, err
	if err != nil && p.shared[s.addr] == s {
		delete(p.shared, s.addr)
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

// wanted reports whether s should be kept. What is dead or idle is taken out of the table; what others still use outside it is kept.
func (p *Port) wanted(s *shared) bool {
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

// forget takes s out of the table, so that the next user dials.
func (p *Port) forget(s *shared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shared[s.addr] == s {
		delete(p.shared, s.addr)
	}
}
