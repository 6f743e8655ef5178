package sim

import (
	"errors"
	"time"

	"github.com/mortise-lock/mortise/session/client"
)

// The programs of some processes open sessions of their own, as with Node.NewSession: when they
// start, and beside and after each fault. They close some of them again. The glue that tells all
// sessions of a process what happens is client.Set, as in the product.

// openSome lets the program of a process open sessions when it has started.
func (p *proc) openSome() {
	for range p.w.cfg.Own {
		p.w.after(p.w.spread(p.w.cfg.TTL), p.open)
	}
}

// second lets programs open and close sessions beside a fault and after it. It has its own random
// numbers, so that the faults do not depend on it.
func (w *fleet) second() {
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
func (w *fleet) closeSome() {
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
	s := newClient(p, ttls[w.opening.IntN(len(ttls))])
	p.opened++
	s.own = &opened{number: p.opened}
	if err := p.sessions.Add(s); err != nil {
		w.stats.Unopened++
		if !errors.Is(err, client.ErrNoRoom) || len(p.sessions.Own()) < p.sessions.Most {
			w.broken("%v is not opened: %v", s, err)
		}
		s.Close()
		return
	}
	p.relist()
	w.note("%v is to be opened", s)
	s.attaches(w.now + w.spread(20*w.cfg.TTL))
}
