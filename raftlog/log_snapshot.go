package raftlog

import (
	"fmt"
	"runtime"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// taken is the state of the snapshot that the owner is taking.
type taken struct {
	order   Take
	capture Capture // nil if there is none
	stepped bool    // the last step of capture is done
	busy    bool    // the snapshotter has not finished its task yet
}

// task is work for the snapshotter: encode capture, or if capture is nil, call Store.Prepare with
// snap.
type task struct {
	order   Take
	capture Capture
	snap    *raftpb.Snapshot
}

func (t *taken) steps() bool { return t.capture != nil && !t.stepped }

const (
	// pace is the time between two calls of step while the owner has nothing else to do.
	pace = time.Millisecond
	// restSteps is the number of steps in one call of step while the owner has nothing else to do.
	restSteps = 16
)

// step does the next step of the snapshot that is being taken, or up to restSteps steps if atRest
// is set. It is called at the end of a turn, after the messages were sent. The owner does not wake
// itself for the next step, because an always runnable goroutine prevents its processor from
// polling the network. After the last step the snapshot is passed to the snapshotter, once the
// snapshotter is idle.
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
		return // the outcome of the snapshotter's task causes the next turn
	}
	l.give(task{order: t.order, capture: t.capture})
	t.capture = nil
}

// give passes a task to the snapshotter. It never blocks, because there is at most one task at a
// time.
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

// runSnapshotter is the snapshotter goroutine. It returns after the owner has ended or after a
// failed task.
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
	ended := true // stays true if runtime.Goexit ends this call
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
