package sim

import (
	"errors"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/session/keeper"
)

var errLost = errors.New("sim: it is not sent")

func (r *ownReplica) outlets() *keeper.Outlets {
	reply := func(to nodeid.ID, b []byte) error {
		r.p.w.watch.keeperSends(r, b)
		return r.p.reply(to, b)
	}
	return &keeper.Outlets{Propose: r.propose, Confirm: r.confirm, Reply: reply, WallUnixMS: r.p.m.wallUnixMS}
}

func (r *ownReplica) propose(term uint64, blob []byte) bool {
	if r.p.w.befalls(dropped, r.p.w.net.drop, r.p.m.name) {
		return false
	}
	r.p.w.watch.keeperProposes(r, term, blob)
	r.log.post(func(clock.Time) { r.core.Propose(term, blob) })
	return true
}

func (r *ownReplica) confirm(term, round uint64) {
	r.p.w.watch.round(r, check.RoundAsked, round)
	r.log.post(func(clock.Time) { r.core.Confirm(term, round) })
}

// reply sends replies of the keeper to the client of an instance. It opens no stream, because the
// instance that sent the request has one.
func (p *proc) reply(to nodeid.ID, b []byte) error {
	if to == p.instance {
		p.sessions.Receive(to, b)
		return nil
	}
	return p.send(to, "", frame{replies: b})
}

func (r *ownReplica) asked(from nodeid.ID, renewals, commands []byte) {
	r.keeping.post(func(now clock.Time) {
		r.p.w.watch.renewalsCome(r, renewals)
		r.keeper.Receive(now, from, renewals, commands)
	})
}

// down reports that a stream to an instance has ended, or that none could be opened.
func (r *ownReplica) down(instance nodeid.ID) {
	r.keeping.post(func(now clock.Time) { r.keeper.Down(now, instance) })
	r.peerLost(instance)
}

// vouch compares the record of a new session with the instance and the address that the connection
// proves.
func (p *proc) vouch(from nodeid.ID, _ *capability.Capability, b []byte) bool {
	addr := p.m.addr
	if from != p.instance {
		links := p.links[from]
		if len(links) == 0 {
			return false
		}
		addr = links[len(links)-1].other.p.m.addr
	}
	return replica.Proof{Instance: from, Addr: addr}.Vouch(b)
}
