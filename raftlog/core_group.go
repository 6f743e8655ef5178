package raftlog

import (
	"encoding/binary"
	"errors"

	"go.etcd.io/raft/v3"
)

// group holds a leader's state for one term. It is reset on every change of term or role.
type group struct {
	queue    queue
	inFlight int    // number of entries proposed and not applied
	newest   int    // size of the last proposed entry, in bytes
	waited   bool   // the batches in the queue have waited long enough
	back     uint64 // number of the present deferral, see defers; zero means none
	leads    bool   // the first entry of the term is applied
	changing changing
	naming   naming

	asked    []uint64 // rounds for which no read request was sent yet
	reads    []read   // read requests that are not answered yet, in order
	sequence uint64   // number of the last read request; never reset, so that no old answer matches
}

// read is one read request of raft. It is for all rounds that were requested since the previous
// read request.
type read struct {
	sequence uint64
	done     bool   // raft has answered
	index    uint64 // index that must be applied before the rounds are confirmed
	rounds   []uint64
}

// An entry of at least crowdBytes counts as large. That is the size of a dozen callers' commands.
const crowdBytes = 256

// propose puts waiting batches into new entries, until EntriesInFlight entries are in flight. Under
// load this bound makes entries large, so that many batches share the cost of one entry.
func (c *Core) propose() {
	g := &c.group
	back := g.back
	g.back = 0
	for c.role.Leading && !c.changes() && g.queue.size() > 0 && g.inFlight < c.cfg.EntriesInFlight &&
		c.transferee == 0 && !g.lingers() && !c.defers(back) {
		data, batches := g.queue.peek(c.cfg.EntryBytes)
		err := c.node.Propose(data)
		if errors.Is(err, raft.ErrProposalDropped) {
			return // too much is uncommitted, or this replica is being removed; the batches wait
		}
		must(err)
		g.queue.drop(batches)
		g.inFlight++
		g.newest, g.waited = len(data), false
	}
}

// lingers reports whether the waiting batches wait for more batches, because a large entry is in
// flight and they are smaller than that entry. The wait ends when no entry is in flight, or at the
// next tick. With 64 callers and one disk this rule gives a sixth more locks per second.
func (g *group) lingers() bool {
	return g.inFlight > 0 && g.newest >= crowdBytes && g.queue.size() < g.newest && !g.waited
}

// defers reports whether the waiting batches must wait because they are deferrable (see Config).
// A deferral avoids the cost of one log entry on every replica. Every turn calls Deferrable
// again, so a deferral ends when Deferrable reports false. It also ends with EndDeferral or with a
// tick. The caller must pass the value that group.back had after the previous turn.
func (c *Core) defers(before uint64) bool {
	g := &c.group
	if c.cfg.Deferrable == nil || g.queue.size() >= crowdBytes || g.waited ||
		!c.cfg.Deferrable(g.queue.waiting(), g.inFlight == 0) {
		return false
	}
	if g.back = before; before == 0 {
		g.back = c.deferrals.next()
	}
	return true
}

// read sends one read request for all requested rounds, once the first entry of this leader's term
// is applied. In a group of one voter, raft would also answer before that. The state could then
// lack entries of earlier terms that were committed.
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

// answer confirms the rounds whose read index is applied, in the order of their requests.
func (c *Core) answer() {
	g := &c.group
	for len(g.reads) > 0 && g.reads[0].done && g.reads[0].index <= c.applied {
		for _, round := range g.reads[0].rounds {
			c.outputs.event(Event{Kind: RoundDone, Term: c.role.Term, Round: round})
		}
		g.reads = g.reads[1:]
	}
}
