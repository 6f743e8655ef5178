package raftlog

import (
	"fmt"
	"runtime"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// taken is the snapshot that the owner is taking.
type taken struct {
	order   Take
	capture Capture // nil if there is none
	stepped bool    // its last step is done
	busy    bool    // the snapshotter works on a task
}

// task is work for the snapshotter: to encode capture if there is one, otherwise to prepare snap.
type task struct {
	order   Take
	capture Capture
	snap    *raftpb.Snapshot
}

// outcome is the result of a task.
type outcome struct {
	prepared bool
	index    uint64 // of the snapshot, unless prepared is set
	data     []byte
	err      error
}

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

func (t *taken) steps() bool { return t.capture != nil && !t.stepped }

const (
	// pace is the time between steps while there are no turns.
	pace = time.Millisecond
	// restSteps is the number of steps that then run together, because the owner has nothing else
	// to do.
	restSteps = 16
)

// step does one step of the snapshot that is being taken. It runs at the end of a turn, after the
// answers of the turn are sent. The owner does not wake itself for steps: under load there are many
// turns, and a goroutine that is always runnable would keep its processor from polling the network.
// After the last step the snapshotter encodes the snapshot. If it still encodes an earlier one that
// a Restore has abandoned, it finishes that first.
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
		return // the outcome of the task starts the next turn
	}
	l.give(task{order: t.order, capture: t.capture})
	t.capture = nil
}

// Prepare makes a snapshot durable here if the store is volatile. Otherwise the snapshotter does.
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

// give passes a task to the snapshotter. It never blocks, because there is only one task at a time:
// a Prepare begins only after the outcome of another task, and step waits while a task runs.
func (l *Log) give(t task) {
	l.taking.busy = true
	l.tasks <- t
}

func (l *Log) settleSnapshotter(o *outcome) error {
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

// runSnapshotter does the slow work for snapshots that needs neither the owner nor the appender. It
// ends with the owner, or with the first failure.
func (l *Log) runSnapshotter() {
	defer close(l.snapshotter)
	for t := range l.tasks {
		if !l.do(t) {
			return
		}
	}
}

func (l *Log) do(t task) bool {
	o := outcome{prepared: t.capture == nil, index: t.order.Index}
	kind := ErrBroken
	if o.prepared {
		kind = ErrStorage
	}
	ended := true // stays true if do ends by runtime.Goexit
	defer func() {
		if p := recover(); p != nil {
			o.err = fmt.Errorf("%w: %w: %w", kind, ErrPanic, l.cause(p))
		} else if ended {
			o.err = fmt.Errorf("%w: %w: %w", kind, ErrPanic, l.cause("runtime.Goexit was called"))
		}
		l.put(func(in *inbox) { in.snapshotter = &o })
	}()
	if !o.prepared {
		o.data = t.capture.AppendTo(t.order.Header, runtime.Gosched)
	} else if err := l.cfg.Store.Prepare(l.ctx, t.snap); err != nil {
		o.err = fmt.Errorf("%w: %w", kind, err)
	}
	ended = false
	return o.err == nil
}
