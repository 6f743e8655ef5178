package mortise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/session"
)

// leaveTime bounds Leave where its context does not.
const leaveTime = 10 * time.Second

// Leave takes the node out of the cluster in good order: it refuses new requests, ends the contexts of its locks so that their holders
// can finish, waits for their Unlock, hands over the lead if it has it, closes the session if nothing is held any more, says goodbye and
// closes the node. If ctx ends first (10 s if it has no deadline) it stops waiting: a lock whose code may still run is left to expire.
// It returns nil if nothing was held at the end. A voter that leaves counts as crashed: the group goes on with those that remain.
func (n *Node) Leave(ctx context.Context) error {
	if n.Err() != nil {
		return n.Close() // it has ended already
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, leaveTime)
		defer cancel()
	}
	n.leaveOnce.Do(func() { close(n.leaving) })
	n.client.Leaving()
	held := n.client.WaitReleased(ctx)
	if r := n.replica.Load(); r != nil && r.role.Load().Leading {
		if err := r.log.Transfer(ctx, 0); err != nil {
			n.logger.Info("nobody took over the lead before this node left", "why", err)
		}
	}
	if held == nil {
		switch err := n.client.CloseSession(ctx); {
		case errors.Is(err, session.ErrStillHeld):
			held = err
		case err != nil:
			n.logger.Info("the session was not closed and runs out by itself", "why", err)
		}
	}
	if held != nil {
		held = fmt.Errorf("mortise: left with locks that were not unlocked; they expire with the session: %w", held)
	}
	if c := n.cluster(); c != nil {
		c.Leave(ctx)
	}
	return errors.Join(held, n.Close())
}

// Close stops the node at once and waits until everything that it started has ended. It does not close the session: locks that are
// held expire, and until then nobody else is granted them; use Leave for an end in good order. It is bounded, and may be called in
// every state and again. If the disk of Config.Dir does not answer, Close stops all the rest and returns an error that says so after 20 s
// at most: a goroutine that is stuck in a system call cannot be ended, and ends by itself when the call does. It does nothing more
// then, and the directory stays in use by this process.
func (n *Node) Close() error {
	closed := ErrClosed
	n.failed.CompareAndSwap(nil, &closed)
	n.leaveOnce.Do(func() { close(n.leaving) })
	err := n.shut()
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.goroutines.Wait()
	return errors.Join(err, n.history.Close())
}

// shut stops all rooms, in an order in which none of them needs one that is stopped. Whoever calls it second waits for the first,
// and not by a sync.Once, which holds a lock across the wait.
func (n *Node) shut() (err error) {
	if !n.shutting.CompareAndSwap(false, true) {
		<-n.shutDone
		return nil
	}
	defer close(n.shutDone)
	n.client.Close()
	if c := n.cluster(); c != nil {
		err = c.Close()
	}
	n.binding.Lock()
	n.ended = true
	r := n.replica.Swap(nil)
	n.binding.Unlock()
	if r != nil {
		r.stop()
	}
	return errors.Join(err, n.port.Close(), n.closeDir())
}
