package raftlog

import (
	"runtime"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// Bounds of the inbox: what comes faster than it can be handled is lost, as on the network; raft
// sends it again.
const (
	stepMessagesMax = 4096
	stepBytesMax    = 64 << 20
	unreachableMax  = 256
)

// gatherMost is how often the owner yields before a turn, at most.
const gatherMost = 3

// inbox is what other goroutines want of the owner. It is swapped whole, so that everything that
// arrives during one turn is handled together in the next.
type inbox struct {
	messages    []*raftpb.Message
	stepBytes   int
	unreachable []uint64
	gone        []uint64
	reports     []snapshotReport
	batches     []byte // back to back
	bounds      []bound
	rounds      []round
	transfers   []transfer
	change      *change
	campaign    bool
	stored      bool
	storeErr    error
	aside       *outcome
}

// bound is where a batch ends in inbox.batches, and its term.
type bound struct {
	term uint64
	end  int
}

type round struct{ term, round uint64 }

// change is a Change and the term for which it was decided.
type change struct {
	term uint64
	Change
}

type snapshotReport struct {
	to, term uint64
	ok       bool
}

// empty keeps the memory for the next turn, unless a burst has made it large. What it held is
// forgotten.
func (in *inbox) empty() {
	clear(in.messages)
	clear(in.transfers)
	messages, batches := in.messages[:0], in.batches[:0]
	if cap(batches) > queueKeepBytes {
		batches = nil
	}
	*in = inbox{messages: messages, batches: batches, unreachable: in.unreachable[:0], gone: in.gone[:0],
		reports: in.reports[:0], bounds: in.bounds[:0],
		rounds: in.rounds[:0], transfers: in.transfers[:0]}
}

// kick wakes the owner. It never blocks: one wake-up is as good as many.
func (l *Log) kick() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// put changes the inbox and wakes the owner, unless the log has ended.
func (l *Log) put(change func(*inbox)) bool {
	l.mu.Lock()
	ok := l.ended == nil
	if ok {
		change(&l.in)
	}
	first := ok && l.first()
	l.mu.Unlock()
	if first {
		l.kick()
	}
	return ok
}

// first reports whether what was put into the inbox is the first since the owner has taken it out:
// only then it must be woken. More wake-ups would be turns with nothing to do. The caller holds mu.
func (l *Log) first() bool {
	l.arrived++
	return l.arrived == 1
}

// gather lets whoever can run add to this turn, and yields again as long as that brings more: the
// cheapest way to large batches, and free for a lone caller. Entries cost the same whatever is in
// them, so with 64 callers the second and the third time save a fifth of all work.
func (l *Log) gather() {
	had := 1
	for range gatherMost {
		runtime.Gosched()
		l.mu.Lock()
		has := l.arrived
		l.mu.Unlock()
		if has <= had {
			return
		}
		had = has
	}
}

// swap takes all that has arrived, and reports whether that is nothing, and whether the log has
// been closed.
func (l *Log) swap() (in *inbox, nothing, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	nothing = l.arrived == 0
	l.in, l.spare, l.arrived = l.spare, l.in, 0
	return &l.spare, nothing, l.ended != nil
}

// Propose queues a batch of commands, which is copied, and reports whether it did: not if the queue
// is full or the log has ended. All batches that wait travel together in one entry, in order. A
// batch is proposed only while this replica leads in the given term; on any change of term or role
// it is thrown away, of which Applier.Role tells. While raft refuses (too much is uncommitted, the
// lead is being handed over) it waits.
func (l *Log) Propose(term uint64, batch []byte) bool {
	l.mu.Lock()
	ok := l.ended == nil && l.queued+len(batch) <= l.cfg.QueueBytes
	if ok {
		l.queued += len(batch)
		l.in.batches = append(l.in.batches, batch...)
		l.in.bounds = append(l.in.bounds, bound{term, len(l.in.batches)})
	}
	first := ok && l.first()
	l.mu.Unlock()
	if first {
		l.kick()
	}
	return ok
}

// Change proposes a change of the configuration, and returns false if the log has ended. It is
// proposed only while this replica leads in that term, Applier.Leads was called, nothing is pending
// (see Survey), and it makes sense for the present configuration; otherwise it is forgotten, as is
// one that another follows at once. Applier.Configured tells what has become of it. The slices must
// not be changed afterwards.
func (l *Log) Change(term uint64, c Change) bool {
	return l.put(func(in *inbox) { in.change = &change{term, c} })
}

// Confirm asks for Applier.Confirmed(term, round): a majority agrees after this call that this
// replica leads in that term, and everything that was committed by then is applied. All rounds of a
// turn share one question to the others. On any change of term or role it is forgotten.
func (l *Log) Confirm(term, n uint64) {
	l.put(func(in *inbox) { in.rounds = append(in.rounds, round{term, n}) })
}

// Step takes a message of another replica, which must not be changed afterwards. The caller has
// checked that its sender belongs to the group and is whom From names. If messages come faster than
// they are handled it is dropped; Status counts that.
func (l *Log) Step(m *raftpb.Message) {
	size := messageBytes(m)
	l.put(func(in *inbox) {
		if len(in.messages) >= stepMessagesMax || in.stepBytes > 0 && in.stepBytes+size > stepBytesMax {
			l.status.Dropped++
			return
		}
		in.stepBytes += size
		in.messages = append(in.messages, m)
	})
}

// messageBytes returns about what a message holds in memory.
func messageBytes(m *raftpb.Message) int {
	n := entryOverheadBytes + len(m.GetSnapshot().GetData())
	for _, e := range m.GetEntries() {
		n += len(e.GetData()) + entryOverheadBytes
	}
	return n
}

// Unreachable says that messages to a replica were probably lost, as when a connection ended: what
// was in flight is sent anew once it answers again.
func (l *Log) Unreachable(id uint64) {
	l.put(func(in *inbox) {
		if len(in.unreachable) < unreachableMax && !slices.Contains(in.unreachable, id) {
			in.unreachable = append(in.unreachable, id)
		}
	})
}

// Gone says that the last stream of a replica has ended, or that it said itself that it has
// retired, behind everything that came on it: its messages were given to Step before. What was in
// flight is sent anew once it answers again. If it led, the others need not wait for an election
// timeout.
func (l *Log) Gone(id uint64) {
	l.put(func(in *inbox) {
		if len(in.gone) < unreachableMax && !slices.Contains(in.gone, id) {
			in.gone = append(in.gone, id)
		}
	})
}

// Campaign makes a voter stand for election now instead of after the election timeout. The only
// voter of a group leads at once.
func (l *Log) Campaign() { l.put(func(in *inbox) { in.campaign = true }) }
