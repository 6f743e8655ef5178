package sim

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/session"
)

// The numbers of the root package, and raftlog's patience.
const (
	patience        = 2 * time.Millisecond
	raftTick        = 25 * time.Millisecond
	electionTicks   = 20
	heartbeatTicks  = 4
	electionTimeout = electionTicks * raftTick
)

// keeperTurn is Keeper.turn.
func (r *ownReplica) keeperTurn(now clock.Time) clock.Time {
	r.keeper.Tick(now)
	w := r.p.w
	if term, blob := r.keeper.Proposal(r.p.m.wallUnixMS()); blob != nil {
		taken := !w.chance(w.net.drop)
		if taken {
			r.log.post(func(clock.Time) { r.core.Propose(term, blob) })
		}
		r.keeper.Proposed(taken)
	}
	if term, round, ok := r.keeper.Round(); ok {
		r.log.post(func(clock.Time) { r.core.Confirm(term, round) })
	}
	for _, replies := range r.keeper.Replies() {
		all := true
		for _, b := range replies.Frames {
			all = all && r.reply(replies.Peer, b)
		}
		r.keeper.Replied(now, replies.Peer, all)
	}
	return r.keeper.Next()
}

func (r *ownReplica) reply(to session.Peer, b []byte) bool {
	if to == r.p.instance {
		r.p.clientReceive(to, b)
		return true
	}
	return r.p.send(to, "", frame{replies: b})
}

// asked takes what a client has sent.
func (r *ownReplica) asked(from session.Peer, renewals, commands []byte) {
	r.keeping.post(func(now clock.Time) { r.keeper.Receive(now, from, renewals, commands) })
}

// down is the news that no stream leads to an instance any more.
func (r *ownReplica) down(instance nodeid.ID) {
	r.keeping.post(func(now clock.Time) { r.keeper.Down(now, instance) })
	r.gone(instance)
}

// gone tells the log that the replica of an instance is out of reach, or over.
func (r *ownReplica) gone(instance nodeid.ID) {
	for _, v := range replica.Placed(&r.config) {
		if id := v.Raft; v.Instance == instance {
			r.log.post(func(clock.Time) { r.core.Gone(id) })
		}
	}
}

// flush sends what the log has for others: a frame for each of them. What finds no room is lost, and raft sends it again.
func (r *ownReplica) flush() {
	for len(r.outbox) > 0 {
		to := r.outbox[0].GetTo()
		var mine, others []*raftpb.Message
		for _, m := range r.outbox {
			if m.GetTo() == to {
				mine = append(mine, m)
			} else {
				others = append(others, m)
			}
		}
		r.outbox = others
		r.p.w.watch.sends(r, mine)
		v := r.p.place(to)
		if r.p.w.chance(r.p.w.net.drop) || !r.p.send(v.Instance, v.Addr, frame{raft: mine}) {
			r.log.post(func(clock.Time) { r.core.Unreachable(to) })
		}
	}
}

// sendSnapshot takes a way of its own, and always says what became of it.
func (r *ownReplica) sendSnapshot(m *raftpb.Message) {
	w := r.p.w
	w.watch.stats.SnapshotsSent++
	from, to := r.p.identity(), m.GetTo()
	term := m.GetTerm()
	v := r.p.place(to)
	report := func(ok bool) { r.log.post(func(clock.Time) { r.core.SnapshotSent(to, term, ok) }) }
	w.after(w.net.hop()+w.between(0, 20*time.Millisecond), func() {
		target := w.at(v.Addr)
		if target == nil || target.proc == nil || !w.net.linked(r.p.m, target) || w.chance(w.net.drop) || w.now < target.pausedUntil {
			w.after(w.between(0, time.Second), func() { report(false) })
			return
		}
		p := target.proc
		if p.replica == nil || p.group != from.group || p.replica.id != to || !p.voterIs(from) {
			report(false)
			return
		}
		p.replica.step(m)
		w.after(w.net.hop(), func() { report(true) })
	})
}
