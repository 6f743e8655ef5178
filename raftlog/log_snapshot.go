package raftlog

import (
	"fmt"
	"runtime"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// taken is the snapshot that the owner is taking, one step at the end of each turn.
type taken struct {
	order   Take
	capture Capture // nil: none
	stepped bool    // its last step is done
	busy    bool    // the aside goroutine has a task whose outcome has not come back
}

// task is what the aside goroutine is to do: to put a snapshot together, or, without a capture, to
// have one prepared.
type task struct {
	order   Take
	capture Capture
	snap    *raftpb.Snapshot
}

// outcome is what has become of a task.
type outcome struct {
	prepared bool
	index    uint64 // if it is not a Prepare: the snapshot's
	data     []byte
	err      error
}

// Take begins a snapshot of the state as it is now.
func (l shell) Take(order Take) error {
	l.where, l.called = inApplier, true
	c, err := l.cfg.Applier.Snapshot()
	l.where = inRaft
	if err != nil {
		return fmt.Errorf("%w: taking a snapshot: %w", ErrBroken, err)
	}
	l.taking.order, l.taking.capture, l.taking.stepped = order, c, false
	return nil
}

// steps reports whether a snapshot has steps left.
func (t *taken) steps() bool { return t.capture != nil && !t.stepped }

const (
	// pace is how long a snapshot waits for its next step while there are no turns.
	pace = time.Millisecond
	// restSteps is how many it does then, since nobody waits for the owner.
	restSteps = 16
)

// step does one step of the snapshot that is being taken, at the very end of a turn: whoever waits
// for an answer of this turn has it by then, and whatever arrives meanwhile comes before the next
// step. The owner does not wake itself for that: under load turns come by themselves, and a
// goroutine that can always run keeps its processor from looking what the network has brought.
// After the last step the aside goroutine puts the snapshot together, unless it is still at work on
// one that a Restore has made worthless.
func (l *Log) step(atRest bool) {
	t := &l.taking
	if t.capture == nil {
		return
	}
	l.where = inApplier
	for n := 0; t.steps() && (n == 0 || atRest && n < restSteps); n++ {
		t.stepped = t.capture.Step()
	}
	l.where = inRaft
	if !t.stepped || t.busy {
		return // its outcome brings the next turn
	}
	l.give(task{order: t.order, capture: t.capture})
	t.capture = nil
}

// Prepare has a snapshot made durable beside the log.
func (l shell) Prepare(s *raftpb.Snapshot) (done bool, err error) {
	if !l.cfg.Store.Volatile() {
		l.give(task{snap: s})
		return false, nil
	}
	l.where = inStore
	err = l.cfg.Store.Prepare(l.ctx, s)
	l.where = inRaft
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return true, nil
}

// give never blocks: a Prepare follows from the outcome of what was put together, and step waits
// for whatever is under way.
func (l *Log) give(t task) {
	l.taking.busy = true
	l.tasks <- t
}

// settleAside tells the core of the outcome of a task.
func (l *Log) settleAside(o *outcome) error {
	l.taking.busy = false
	switch {
	case o.err != nil:
		return o.err
	case o.prepared:
		l.core.Prepared()
	default:
		l.core.Snapshotted(o.index, o.data)
	}
	return nil
}

// assist is the aside goroutine: it does for snapshots what takes long and needs neither the owner
// nor the appender. It ends with the owner, or with the first failure.
func (l *Log) assist() {
	defer close(l.aside)
	for t := range l.tasks {
		if !l.do(t) {
			return
		}
	}
}

// do does a task, reports its outcome, and whether it went well.
func (l *Log) do(t task) bool {
	o := outcome{prepared: t.capture == nil, index: t.order.Index}
	kind := ErrBroken
	if o.prepared {
		kind = ErrStorage
	}
	ended := true // from within, unless this is reached
	defer func() {
		if p := recover(); p != nil {
			o.err = fmt.Errorf("%w: %w: %w", kind, ErrPanic, l.cause(p))
		} else if ended {
			o.err = fmt.Errorf("%w: %w: %w", kind, ErrPanic, l.cause("the goroutine was ended from within"))
		}
		l.put(func(in *inbox) { in.aside = &o })
	}()
	if !o.prepared {
		o.data = t.capture.AppendTo(t.order.Header, runtime.Gosched)
	} else if err := l.cfg.Store.Prepare(l.ctx, t.snap); err != nil {
		o.err = fmt.Errorf("%w: %w", kind, err)
	}
	ended = false
	return o.err == nil
}
