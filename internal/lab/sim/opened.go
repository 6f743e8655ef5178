package sim

import (
	"errors"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session/client"
)

// The programs of some processes open sessions of their own, as with Node.NewSession: when they
// start, and beside and after each fault. They close some of them again. The glue that tells all
// sessions of a process what happens is client.Set, as in the product.

const openedPoll = 20 * time.Millisecond

// opens reports whether programs open sessions.
func (w *world) opens() bool { return w.cfg.Own > 0 && !w.quiet }

func (w *world) spread(d time.Duration) time.Duration {
	return time.Duration(w.opening.Int64N(int64(d) + 1))
}

// openSome lets the program of a process open sessions when it has started.
func (p *proc) openSome() {
	for range p.w.cfg.Own {
		p.w.after(p.w.spread(p.w.cfg.TTL), p.open)
	}
}

// second lets programs open and close sessions beside a fault and after it. It has its own random
// numbers, so that the faults do not depend on it.
func (w *world) second() {
	if !w.opens() {
		return
	}
	for p := range w.procs() {
		switch w.opening.IntN(6) {
		case 0:
			w.after(0, p.open)
		case 1:
			w.after(w.spread(4*w.cfg.TTL), p.open)
		case 2, 3:
			if all := p.sessions.Own(); len(all) > 0 {
				w.after(w.spread(w.cfg.TTL), all[w.opening.IntN(len(all))].close)
			}
		}
	}
}

// closeSome lets programs close some sessions at the end of a run.
func (w *world) closeSome() {
	for p := range w.procs() {
		for _, s := range p.sessions.Own() {
			if w.opening.IntN(2) == 0 {
				w.after(w.spread(w.cfg.TTL), s.close)
			}
		}
	}
}

// open opens a session, as Node.NewSession does: it waits until the session is attached, and gives
// up after a drawn time.
func (p *proc) open() {
	w := p.w
	switch until := p.m.pausedUntil; {
	case p.dead || p.leaving || !w.opens():
		return
	case w.now < until:
		w.after(until-w.now, p.open)
		return
	}
	ttls := []time.Duration{max(time.Second, w.cfg.TTL/2), w.cfg.TTL, 2 * w.cfg.TTL, 2 * client.LongestTTL}
	s := p.newClient(ttls[w.opening.IntN(len(ttls))])
	p.opened++
	s.own = &opened{number: p.opened}
	if err := p.sessions.Add(s); err != nil {
		w.watch.stats.Unopened++
		if !errors.Is(err, client.ErrNoRoom) || len(p.sessions.Own()) < p.sessions.Most {
			w.broken("%v is not opened: %v", s, err)
		}
		s.Close()
		return
	}
	w.note("%v is to be opened", s)
	s.attaches(w.now + w.spread(20*w.cfg.TTL))
}

func (s *ownClient) attaches(until time.Duration) {
	p, w := s.p, s.p.w
	switch {
	case p.dead || s.owner.ended:
	case s.phase == client.Attached:
		w.watch.stats.Opened++
		w.note("%v is open", s)
		for range 1 + w.opening.IntN(4)/3 {
			w.after(w.spread(w.cfg.Think), func() { s.caller(nil) })
		}
	case w.now >= until && !w.calm:
		w.note("%v is given up", s)
		s.own.closing = true
		p.sessions.Drop(s)
		s.Close()
	default:
		p.later(openedPoll, func() { s.attaches(until) })
	}
}

// close closes a session, as Session.Close does: once no lock is held, and at last without the
// group's answer.
func (s *ownClient) close() {
	if s.p.dead || s.owner.ended || s.own.closing || s.phase != client.Attached {
		return
	}
	s.p.w.note("%v is to be closed", s)
	s.own.closing = true
	s.p.later(0, func() { s.closeWithin(s.p.w.spread(20 * s.p.w.cfg.TTL)) })
}

func (s *ownClient) closeWithin(patience time.Duration) {
	var err error
	if s.inClient(func(now clock.Time) { err = s.closeSession(now) }); s.p.dead || s.owner.ended {
		return
	}
	s.owner.run()
	if err != nil {
		s.p.later(openedPoll, func() { s.closeWithin(patience) })
		return
	}
	s.closed(s.p.w.now + patience)
}

func (s *ownClient) closed(until time.Duration) {
	w := s.p.w
	if !s.core.Closed() && w.now < until && !s.owner.ended {
		s.p.later(openedPoll, func() { s.closed(until) })
		return
	}
	if s.core.Closed() {
		w.watch.stats.Closed++
	}
	w.note("%v is closed, with an answer: %v", s, s.core.Closed())
	s.p.sessions.Drop(s)
	s.Close()
}
