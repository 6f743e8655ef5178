package raftlog

import (
	"encoding/binary"
	"errors"

	"go.etcd.io/raft/v3"
)

// group is the state of this replica as leader of one term. It is reset when the term or role
// changes.
type group struct {
	queue    queue
	inFlight int    // entries proposed and not applied
	newest   int    // bytes of the entry that was proposed last
	waited   bool   // the batches in the queue have waited long enough
	back     uint64 // number of the deferral under way, see defers; zero means none
	leads    bool   // the first entry of the term is applied
	changing changing

	asked    []uint64 // rounds without a read request yet
	reads    []read   // read requests under way, in order
	sequence uint64   // never reset, so that no answer of an earlier lead matches
}

// read is one read request of raft. It serves all rounds that were requested before it was sent.
type read struct {
	sequence uint64
	done     bool   // raft has answered
	index    uint64 // must be applied before the rounds are confirmed
	rounds   []uint64
}

// crowdBytes is the size of a large entry: the commands of about a dozen callers.
const crowdBytes = 256

// propose puts the waiting batches into entries, as many as EntriesInFlight allows. Under load this
// limit makes the entries large, so that more batches share the cost of one entry.
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

// lingers reports whether the waiting batches should wait for more batches. They should if a large
// entry is under way, because a small entry would take the place of the next large one. With 64
// callers and one disk this raises the throughput by a sixth. With one or a few callers no batch
// waits. The wait ends when an entry is applied, or after a tick.
func (g *group) lingers() bool {
	return g.inFlight > 0 && g.newest >= crowdBytes && g.queue.size() < g.newest && !g.waited
}

// defers reports whether the waiting batches are deferrable (see Config). Deferral saves an entry
// on every replica. When callers hand a lock from one to the next it saves every second entry,
// because a caller that has unlocked requests the lock again and then only waits. Each turn decides
// again, so the deferral ends when an applied entry changes the answer, and also with EndDeferral
// or a tick. Large entries are shared without deferral. The argument before is group.back after the
// previous turn.
func (c *Core) defers(before uint64) bool {
	g := &c.group
	if c.cfg.Deferrable == nil || g.queue.size() >= crowdBytes || g.waited ||
		!c.cfg.Deferrable(g.queue.waiting(), g.inFlight == 0) {
		return false
	}
	if g.back = before; before == 0 {
		c.backs++
		g.back = c.backs
	}
	return true
}

// read sends one read request for all requested rounds, once the first entry of this leader's term
// is applied. Raft would answer the only voter of a group earlier, when its state may still lack
// entries that were committed before.
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
			c.out.Events = append(c.out.Events, Event{Kind: RoundDone, Term: c.role.Term, Round: round})
		}
		g.reads = g.reads[1:]
	}
}
