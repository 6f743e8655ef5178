package keeper

import (
	"fmt"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

// Check verifies the invariants of the core, for tests.
func (k *Core) Check() error {
	attachments, opens, queued, expiring := 0, 0, 0, 0
	for i, p := range k.peers.all {
		if p.place != i || k.peers.byID[p.id] != p {
			return fmt.Errorf("peer %d at place %d records place %d, or is not found by its ID", p.id, i, p.place)
		}
		attachments += len(p.attachments)
		opens += p.opens
		queued += p.queued
		for _, a := range p.attachments {
			if k.peers.attachments[a.session] != a || a.over || a.peer != p {
				return fmt.Errorf("peer %d: attachment %+v is not the session's", p.id, a)
			}
			if s := k.leases.sessions[a.session]; a.live && (s == nil || s.epoch != a.epoch) {
				return fmt.Errorf("attachment %d of %d is live, the session is %+v", a.epoch, a.session, s)
			}
		}
		if len(p.attachments)+p.opens+p.queued+len(p.pending) == 0 && !p.isTouched {
			return fmt.Errorf("peer %d is kept without a reason", p.id)
		}
	}
	left := 0
	for i, s := range k.leases.entering.sessions {
		if k.leases.entering.done[i] {
			continue
		}
		if left++; k.leases.sessions[s.ID] != nil || i < k.leases.entering.next {
			return fmt.Errorf("session %d at place %d is entered, but not marked as entered; the next place is %d",
				s.ID, i, k.leases.entering.next)
		}
	}
	if left != k.leases.entering.left {
		return fmt.Errorf("%d sessions are not entered, counted as %d", left, k.leases.entering.left)
	}
	if err := k.leases.checkOpeners(); err != nil {
		return err
	}
	sum := 0
	for _, p := range k.queue.runs {
		sum += p.size()
	}
	for _, p := range k.paces.held {
		sum += p.size()
	}
	for _, s := range k.leases.sessions {
		if s.expiring {
			expiring++
		}
	}
	if attachments != len(k.peers.attachments) || opens != len(k.opens) || queued != k.queue.bytes || sum != queued ||
		expiring != k.leases.expiring || len(k.peers.all) != len(k.peers.byID) {
		return fmt.Errorf("counted and recorded: attachments %d %d, opens %d %d, queued %d %d %d, expiring %d %d, "+
			"peers %d %d",
			attachments, len(k.peers.attachments), opens, len(k.opens), queued, k.queue.bytes, sum, expiring, k.leases.expiring,
			len(k.peers.all), len(k.peers.byID))
	}
	return nil
}

// checkOpeners verifies that the lists of openers have each session once that is not gone.
func (l *leases) checkOpeners() error {
	listed, owned := 0, 0
	for by, first := range l.opened.first {
		n := 0
		for s := first; s != nil; s = s.earlier {
			if n++; nodeid.ID(s.opener.Instance) != by || l.sessions[s.id] != s || s.earlier != nil && s.earlier.later != s {
				return fmt.Errorf("session %d is in the list of instance %v: %+v", s.id, by, s)
			}
		}
		if n == 0 || n != l.opened.count[by] || first.later != nil {
			return fmt.Errorf("instance %v has opened %d sessions, counted as %d", by, n, l.opened.count[by])
		}
		listed += n
	}
	for _, s := range l.sessions {
		if s.opener != (lockfsm.Opener{}) {
			owned++
		}
	}
	if listed != owned || len(l.opened.first) != len(l.opened.count) {
		return fmt.Errorf("%d sessions are listed by their openers, of %d that have one", listed, owned)
	}
	return nil
}

// Kept is a keeper's state of one session, for simulations.
type Kept struct {
	Deadline clock.Time // when the session may expire, on the keeper's clock
	Expiring bool
	Renewing bool
}

// Kept returns the core's state of a session, and false for an unknown session.
func (k *Core) Kept(id lockfsm.SessionID) (kept Kept, ok bool) {
	if place, found := k.leases.entering.at(id); found {
		return Kept{Deadline: k.leases.entering.since.Add(k.leases.entering.sessions[place].TTL + k.stalled)}, true
	}
	s := k.leases.sessions[id]
	if s == nil {
		return Kept{}, false
	}
	a := k.peers.attachments[id]
	return Kept{Deadline: s.deadline.Add(k.stalled), Expiring: s.expiring, Renewing: a != nil &&
		(a.waits || a.flies)}, true
}
