package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
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

type paces struct {
	owners  map[lockfsm.Opener]*pace
	pending map[attachID]*pace
	held    []commandRun // in the order in which they arrived
}

func (k *Core) paceOf(owner lockfsm.Opener) *pace {
	p := k.paces.owners[owner]
	if p != nil {
		return p
	}
	if n := len(k.paces.owners); n > 0 && n%sweepPaces == 0 {
		for o, p := range k.paces.owners {
			if !p.blocks(k.now) {
				delete(k.paces.owners, o)
			}
		}
	}
	p = &pace{each: attachPause}
	if owner.Capability != [32]byte{} {
		p.each = guestPause
	}
	k.paces.owners[owner] = p
	return p
}

// hold keeps a run whose Attach comes too early, or which follows such an Attach.
func (k *Core) hold(p commandRun) bool {
	if p.on == nil || !p.on.held && !p.pace.blocks(k.now) {
		return false
	}
	p.on.held = true
	k.paces.held = append(k.paces.held, p)
	return true
}

// release moves the runs that need not wait any more to the queue.
func (k *Core) release() {
	kept := k.paces.held[:0]
	for _, p := range k.paces.held {
		switch {
		case p.on.over:
			k.queued -= len(p.bytes)
			p.peer.queued -= len(p.bytes)
			k.touch(p.peer)
		case p.pace == nil && p.on.held || p.pace.blocks(k.now):
			kept = append(kept, p)
		default:
			p.on.held = false
			k.propose(p)
		}
	}
	clear(k.paces.held[len(kept):])
	k.paces.held = kept
}

// propose adds a run to the queue and counts its Attach.
func (k *Core) propose(p commandRun) {
	id := attachID{}
	if p.on != nil {
		id = attachID{p.on.session, p.on.epoch}
	}
	if p.pace != nil && k.paces.pending[id] == nil {
		k.paces.pending[id] = p.pace
		p.pace.pending++
	}
	k.queue = append(k.queue, p)
}

// paced is called when an Attach is applied, with the number of requests that its result lists, or
// when it will not be proposed.
func (k *Core) paced(id attachID, listed int) {
	p := k.paces.pending[id]
	if p == nil {
		return
	}
	delete(k.paces.pending, id)
	p.pending--
	p.until = max(p.until, k.now.Add(min(time.Duration(max(listed-attachFree, 0))*p.each, maxAttachPause)))
}

// nextAttach returns when the next run is released, or 0 if an applied command releases it.
func (k *Core) nextAttach() (at clock.Time) {
	for _, p := range k.paces.held {
		if due := k.now; p.on.over || p.pace != nil && p.pace.pending == 0 {
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
