package raftlog

import (
	"runtime"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// These are the bounds of the inbox. Messages and reports that exceed them are dropped. Raft sends
// messages again.
const (
	maxStepMessages = 4096
	maxStepBytes    = 64 << 20
	maxUnreachable  = 256
)

const maxGathers = 3

// inbox holds the input of other goroutines for the owner, until the next turn.
type inbox struct {
	messages    []arrival
	stepBytes   int
	unreachable []uint64
	lost        []uint64
	reports     []snapshotReport
	batches     []byte // the bytes of all batches, concatenated
	bounds      []bound
	rounds      []round
	transfers   []transfer
	change      *change
	campaign    bool
	stored      bool
	storeErr    error
	snapshotter *outcome
}

// arrival is a received message. duplicate is true if it came on the second connection.
type arrival struct {
	message   *raftpb.Message
	duplicate bool
}

// bound is the term of a batch, and the offset in inbox.batches at which the batch ends.
type bound struct {
	term uint64
	end  int
}

type round struct{ term, round uint64 }

// change is a Change and the only term in which it may be proposed.
type change struct {
	term uint64
	Change
}

type snapshotReport struct {
	to, term uint64
	ok       bool
}

type transfer struct {
	to   uint64
	done chan error // buffered, so that the owner never blocks
}

type outcome struct {
	prepared bool
	index    uint64 // index of the encoded snapshot; not set if prepared is true
	data     []byte
	err      error
}

func (in *inbox) empty() {
	clear(in.messages)
	clear(in.transfers)
	messages, batches := in.messages[:0], in.batches[:0]
	if cap(batches) > queueKeepBytes {
		batches = nil
	}
	*in = inbox{messages: messages, batches: batches, unreachable: in.unreachable[:0], lost: in.lost[:0],
		reports: in.reports[:0], bounds: in.bounds[:0],
		rounds: in.rounds[:0], transfers: in.transfers[:0]}
}

func (l *Log) kick() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

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

// A call of first counts an addition to the inbox, and reports whether it is the first since the
// last swap. Only the first must wake the owner, because more wake-ups cause empty turns. The
// caller must hold mu.
func (l *Log) first() bool {
	l.arrived++
	return l.arrived == 1
}

// gather yields the processor so that other goroutines can add to the inbox before this turn. It
// yields again, up to maxGathers times, as long as something was added. With 64 callers, yielding
// a second and a third time saves a fifth of all work.
func (l *Log) gather() {
	had := 1
	for range maxGathers {
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

// swap returns the inbox and puts an empty one in its place. It reports whether the returned inbox
// is empty, and whether the log has ended.
func (l *Log) swap() (in *inbox, nothing, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	nothing = l.arrived == 0
	l.in, l.spare, l.arrived = l.spare, l.in, 0
	return &l.spare, nothing, l.ended != nil
}

// Propose copies a batch of commands to the queue. It reports false if the queue is full or the log
// has ended. All waiting batches share one entry, in order. A batch is proposed only while this
// replica leads in the given term. A change of term or role, which Applier.Role reports, discards
// the batch. A batch waits while too much is uncommitted, while a change of the configuration is
// not applied, and while the leadership is being transferred.
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

// Change proposes a change of the configuration. It reports false if the log has ended. The change
// is dropped without a report if this replica does not lead in that term, if Applier.Leads was not
// called yet, if Survey.Pending is set, or if the change is invalid. The caller must check the
// Survey and try again. A second call before the next turn replaces the first change. The slices
// must not be changed after the call.
func (l *Log) Change(term uint64, c Change) bool {
	return l.put(func(in *inbox) { in.change = &change{term, c} })
}

// Confirm requests a call of Applier.Confirmed(term, n). All rounds of a turn share one read
// request to the followers. A change of term or role discards the round.
func (l *Log) Confirm(term, n uint64) {
	l.put(func(in *inbox) { in.rounds = append(in.rounds, round{term, n}) })
}

// Step handles a message of another replica. The message must not be changed after the call. The
// caller must have checked that the sender belongs to the group and that the message's From is
// the sender's ID. If the inbox is full, the message is dropped and counted in Status.Dropped.
func (l *Log) Step(m *raftpb.Message) { l.arrive(arrival{m, false}) }

// StepDuplicate is Step for a message from the second connection, see Config.SendDuplicates.
func (l *Log) StepDuplicate(m *raftpb.Message) { l.arrive(arrival{m, true}) }

func (l *Log) arrive(a arrival) {
	size := messageBytes(a.message)
	l.put(func(in *inbox) {
		if len(in.messages) >= maxStepMessages || in.stepBytes > 0 && in.stepBytes+size > maxStepBytes {
			l.status.Dropped++
			return
		}
		in.stepBytes += size
		in.messages = append(in.messages, a)
	})
}

func messageBytes(m *raftpb.Message) int {
	n := entryOverheadBytes + len(m.GetSnapshot().GetData())
	for _, e := range m.GetEntries() {
		n += len(e.GetData()) + entryOverheadBytes
	}
	return n
}

// Unreachable reports that messages to a replica were probably lost, for example because a
// connection ended. The log sends entries again when the replica answers.
func (l *Log) Unreachable(id uint64) {
	l.put(func(in *inbox) {
		if len(in.unreachable) < maxUnreachable && !slices.Contains(in.unreachable, id) {
			in.unreachable = append(in.unreachable, id)
		}
	})
}

// PeerLost reports that the last stream of a replica has ended, or that the replica has announced
// its retirement. All messages of that replica must already have been passed to Step. PeerLost has
// the effect of Unreachable. If the replica was the leader, this voter also starts an election
// immediately.
func (l *Log) PeerLost(id uint64) {
	l.put(func(in *inbox) {
		if len(in.lost) < maxUnreachable && !slices.Contains(in.lost, id) {
			in.lost = append(in.lost, id)
		}
	})
}

// Campaign makes a voter start an election now. The only voter of a group becomes the leader
// immediately.
func (l *Log) Campaign() { l.put(func(in *inbox) { in.campaign = true }) }
