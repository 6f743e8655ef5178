package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file bounds the rate of Attach. The result of an Attach lists all requests of its session,
// so a few bytes make work for each of them on every voter. Each owner has at most one Attach that
// is not applied. A pause in proportion to the listed requests follows, unless they are few. An
// Attach that comes earlier is kept until then, with the later commands of its attachment. Owners
// do not wait for each other, so a failover's many instances attach at once.

const (
	// for each request that an Attach has listed, above attachFree; with a derived secret it is
	// longer, because an Attach costs all voters up to half a microsecond for each
	attachPause    = 2 * time.Microsecond
	guestPause     = 20 * time.Microsecond
	attachFree     = 64
	maxAttachPause = time.Second
	sweepPaces     = 1024
)

// pace is the pace of one owner: of one instance under one capability.
type pace struct {
	each    time.Duration // attachPause or guestPause
	pending int           // its commands of the kind Attach that are not applied
	until   clock.Time
}

func (p *pace) blocks(now clock.Time) bool { return p != nil && (p.pending > 0 || now.Before(p.until)) }

// attachID identifies an Attach that is proposed.
type attachID struct {
	session lockfsm.SessionID
	epoch   lockfsm.Epoch
}

// commandRun is a sequence of commands of one attachment, or one Open, that waits to be proposed.
type commandRun struct {
	peer  *peerState
	on    *attachment // nil for an Open
	nonce lockfsm.Nonce
	pace  *pace // nil unless the run begins with an Attach
	bytes []byte
}

// paces are the paces of all owners, and the runs that wait for them.
type paces struct {
	owners  map[lockfsm.Opener]*pace
	pending map[attachID]*pace
	held    []commandRun // in the order in which they arrived
	likely  int          // of held; see session.Emptied
}

func newPaces() paces {
	return paces{owners: make(map[lockfsm.Opener]*pace), pending: make(map[attachID]*pace)}
}

func (s *paces) of(owner lockfsm.Opener, now clock.Time) *pace {
	p := s.owners[owner]
	if p != nil {
		return p
	}
	if n := len(s.owners); n > 0 && n%sweepPaces == 0 {
		for o, p := range s.owners {
			if !p.blocks(now) {
				delete(s.owners, o)
			}
		}
	}
	p = &pace{each: attachPause}
	if owner.Capability != [32]byte{} {
		p.each = guestPause
	}
	s.owners[owner] = p
	return p
}

// hold keeps a run whose Attach comes too early, or which follows such an Attach.
func (s *paces) hold(p *commandRun, now clock.Time) bool {
	if p.on == nil || !p.on.held && !p.pace.blocks(now) {
		return false
	}
	p.on.held = true
	s.held = append(s.held, *p)
	return true
}

// release calls free for each run that need not wait any more, in order. Such a run is over, or is
// proposed at once: then the next Attach of its owner still waits.
func (s *paces) release(now clock.Time, free func(commandRun)) {
	kept := s.held[:0]
	for _, p := range s.held {
		if !p.on.over && (p.pace == nil && p.on.held || p.pace.blocks(now)) {
			kept = append(kept, p)
			continue
		}
		if !p.on.over {
			p.on.held = false
		}
		free(p)
	}
	if len(kept) == 0 {
		s.held = session.Emptied(s.held, &s.likely)
		return
	}
	clear(s.held[len(kept):])
	s.held = kept
}

// proposed counts the Attach of a run.
func (s *paces) proposed(p *commandRun) {
	if p.pace == nil {
		return
	}
	if id := (attachID{p.on.session, p.on.epoch}); s.pending[id] == nil {
		s.pending[id] = p.pace
		p.pace.pending++
	}
}

// applied is called when an Attach is applied, with the number of requests that its result lists,
// or when it will not be proposed.
func (s *paces) applied(id attachID, listed int, now clock.Time) {
	p := s.pending[id]
	if p == nil {
		return
	}
	delete(s.pending, id)
	p.pending--
	p.until = max(p.until, now.Add(min(time.Duration(max(listed-attachFree, 0))*p.each, maxAttachPause)))
}

// next returns when the next run is released, or 0 if an applied command releases it.
func (s *paces) next(now clock.Time) (at clock.Time) {
	for _, p := range s.held {
		if due := now; p.on.over || p.pace != nil && p.pace.pending == 0 {
			if p.pace != nil && !p.on.over {
				due = max(due, p.pace.until)
			}
			if at == 0 || due.Before(at) {
				at = due
			}
		}
	}
	return at
}
