package raftlog

import (
	"encoding/binary"
	"errors"

	"go.etcd.io/raft/v3"
)

// group holds all that belongs to one lead, and goes with it: batches that wait, how many entries
// are on their way, rounds of confirmation.
type group struct {
	queue    queue
	inFlight int    // entries proposed and not applied
	newest   int    // bytes of the last one proposed
	waited   bool   // what is in the queue has waited long enough
	back     uint64 // what stands back, see patient: each time it is another number; 0: nothing does
	leads    bool   // the first entry of the term is applied
	changing changing

	asked    []uint64 // rounds that no read request carries yet
	reads    []read   // read requests under way, in order
	sequence uint64   // of the last read request; never reset, so that no answer of an earlier lead fits
}

// read is one read request of raft, for all rounds that were asked for by the time of its turn.
type read struct {
	sequence uint64
	done     bool   // raft has answered
	index    uint64 // what must be applied before the rounds are confirmed
	rounds   []uint64
}

// crowdBytes is what makes an entry one of many: the commands of about a dozen callers.
const crowdBytes = 256

// propose puts the batches that wait into as many entries as may be under way. The more batches
// wait, the more share an entry and its cost: under load this bound is what makes the batches
// large.
//
// No batch is put behind a change of the configuration that is not applied, see core_departure.go.
func (c *Core) propose() {
	g := &c.group
	back := g.back
	g.back = 0
	for c.role.Leading && !c.changes() && g.queue.size() > 0 && g.inFlight < c.cfg.EntriesInFlight &&
		c.transferee == 0 && !g.lingers() && !c.patient(back) {
		data, batches := g.queue.peek(c.cfg.EntryBytes)
		err := c.node.Propose(data)
		if errors.Is(err, raft.ErrProposalDropped) {
			return // too much is uncommitted, or this replica is being removed; the queue waits
		}
		must(err)
		g.queue.drop(batches)
		g.inFlight++
		g.newest, g.waited = len(data), false
	}
}

// lingers reports whether those who wait had better wait for company: many are under way, and the
// few that came too late for them would take the place of the many that come next. With 64 callers
// and one disk that is worth a sixth of all locks; whoever is alone, or among few, never waits. It
// ends when something is applied or a tick has passed, so however long the round trip is nobody
// waits for more than a tick.
func (g *group) lingers() bool {
	return g.inFlight > 0 && g.newest >= crowdBytes && g.queue.size() < g.newest && !g.waited
}

// patient reports whether nobody is kept waiting if what waits goes with the next batch of which
// that is not true: an entry, with all that it costs on every replica, is saved. Where a lock is
// handed from one to the next that is every second one: who has given it up asks for it again, and
// only waits. It is asked anew in each turn, so it ends with whatever is applied that makes it
// untrue, and with Remind or a tick at the latest. Where there are many an entry is shared anyway.
// before is what stood back until now.
func (c *Core) patient(before uint64) bool {
	g := &c.group
	if c.cfg.Patient == nil || g.queue.size() >= crowdBytes || g.waited ||
		!c.cfg.Patient(g.queue.waiting(), g.inFlight == 0) {
		return false
	}
	if g.back = before; before == 0 {
		c.backs++
		g.back = c.backs
	}
	return true
}

// read sends one read request for all rounds asked for, once this replica's own first entry is
// applied. Raft would answer a lone voter earlier, with a state that lacks what was committed
// before.
func (c *Core) read() {
	g := &c.group
	if len(g.asked) == 0 || !g.leads {
		return
	}
	g.sequence++
	g.reads = append(g.reads, read{sequence: g.sequence, rounds: g.asked})
	g.asked = nil
	c.node.ReadIndex(binary.LittleEndian.AppendUint64(nil, g.sequence))
}

// confirmed files an answer of raft.
func (g *group) confirmed(rs raft.ReadState) {
	if len(rs.RequestCtx) != 8 {
		return
	}
	sequence := binary.LittleEndian.Uint64(rs.RequestCtx)
	for i := range g.reads {
		if g.reads[i].sequence == sequence {
			g.reads[i].done, g.reads[i].index = true, rs.Index
		}
	}
}

// answer confirms the rounds whose read index is applied, in the order in which they were asked
// for.
func (c *Core) answer() {
	g := &c.group
	for len(g.reads) > 0 && g.reads[0].done && g.reads[0].index <= c.applied {
		for _, round := range g.reads[0].rounds {
			c.out.Events = append(c.out.Events, Event{Kind: RoundDone, Term: c.role.Term, Round: round})
		}
		g.reads = g.reads[1:]
	}
}
