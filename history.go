package mortise

import (
	"context"
	"errors"
	"sync"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/session"
)

// This file writes what callers see into Config.History. What voters apply is written by the replica.

// tape is the part of a Lock that only a recorded one has.
type tape struct {
	op     uint64
	unlock sync.Once // the first Unlock is recorded before any of them releases
}

// newHistory returns the recorder that the configuration asks for, or nil. Its times are those of the boot clock, set by the wall clock
// once: they compare between machines as far as wall clocks do, and no change of a wall clock reaches back into a history.
func newHistory(c Config, e env) *history.Recorder {
	if c.History == nil {
		return nil
	}
	origin := e.wall().UnixNano() - int64(e.clock.Now())
	return history.NewRecorder(history.RecorderConfig{
		Writer: c.History, Node: c.Name, Now: func() int64 { return origin + int64(e.clock.Now()) },
	})
}

// acquireRecorded is Acquire with a record of it.
func (n *Node) acquireRecorded(ctx context.Context, client *session.Client, r Request, under *session.Request, w *hooked) (*Lock, error) {
	asks := w.marked(&r, r.of(under))
	asked := history.Event{Key: asks.Key, Try: asks.Try}
	if t := asks.Terms; t != nil {
		asked.Keys, asked.Permits, asked.Of, asked.Resumes = t.Keys, t.Permits, t.Of, t.Resume
	}
	op := n.history.Call(asked)
	l := &Lock{node: n, tape: &tape{op: op}}
	l.watch(w)
	if err := client.AcquireInto(ctx, &l.hold, asks); err != nil {
		var held *session.HeldError
		if r.Try && errors.As(err, &held) {
			n.history.Held(op, held.Token)
		} else {
			n.history.Failed(op, errorClass(err))
		}
		return nil, n.explainUnder(under, &r, err)
	}
	n.history.Granted(op, l.hold.Token())
	n.spawn(func() {
		<-l.hold.Done()
		if !errors.Is(l.hold.Err(), ErrUnlocked) {
			n.recordLoss(op, l.hold.Until())
		}
	})
	return l, nil
}

// recordLoss says when a lock was lost, though the process may have been stopped then and notice it only now.
func (n *Node) recordLoss(op uint64, until clock.Time) {
	n.history.Lost(op, n.history.Now()-int64(n.env.clock.Now().Sub(until)))
}

// unlockRecorded is Unlock with a record of it.
func (l *Lock) unlockRecorded(ctx context.Context) error {
	l.tape.unlock.Do(func() {
		_ = l.hold.Err() // a history is told of a loss by itself, and since when
		l.node.history.Unlock(l.tape.op)
	})
	err := lossOf(l.hold.Release(ctx))
	l.node.history.Unlocked(l.tape.op, errorClass(err))
	return err
}

// unlockSoonRecorded is UnlockSoon with a record of it: for a history the call goes on until the release is confirmed.
func (l *Lock) unlockSoonRecorded() error {
	l.tape.unlock.Do(func() {
		l.node.history.Unlock(l.tape.op)
		l.node.spawn(func() { l.node.history.Unlocked(l.tape.op, errorClass(l.hold.Release(context.Background()))) })
	})
	return lossOf(l.hold.ReleaseSoon())
}

// detachRecorded is Detach with a record of it: its caller knows nothing of the lock any more, and it goes on.
func (l *Lock) detachRecorded(ctx context.Context, how letting) error {
	l.tape.unlock.Do(func() { l.node.recordLoss(l.tape.op, l.node.env.clock.Now()) })
	return l.detach(ctx, how)
}

// errorClass names the kind of an error for a history, where texts have no place; "" is none.
func errorClass(err error) string {
	if err == nil {
		return ""
	}
	for _, class := range [...]struct {
		err  error
		name string
	}{
		{context.Canceled, "context"}, {context.DeadlineExceeded, "context"}, {ErrLost, "lost"}, {ErrClosed, "closed"}, {ErrLeaving, "leaving"},
		{ErrQueueFull, "queue full"}, {ErrOverloaded, "overloaded"}, {ErrNoRoom, "no room"}, {ErrBadKey, "bad key"}, {ErrNotHeld, "not held"}, {ErrBadRequest, "bad request"}, {session.ErrInGrace, "not ready"},
		{session.ErrNoLeader, "not ready"},
	} {
		if errors.Is(err, class.err) {
			return class.name
		}
	}
	if deadlock := (*session.DeadlockError)(nil); errors.As(err, &deadlock) {
		return "deadlock"
	}
	return "other"
}
