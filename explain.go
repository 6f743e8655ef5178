package mortise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// explain turns an error of the session room into one of this package, and says what a wait that was broken off waited for.
func (n *Node) explain(doing string, err error) error {
	var held *client.HeldError
	var wait *client.WaitError
	var deadlock *client.DeadlockError
	var denied *session.NotAllowedError
	switch {
	case n.engine.Err() != nil:
		return n.engine.Err()
	case errors.As(err, &denied):
		return (*NotAllowedError)(denied)
	case errors.As(err, &held):
		return n.met(held)
	case errors.As(err, &deadlock):
		return deadlockError(deadlock)
	case errors.Is(err, client.ErrInGrace), errors.Is(err, client.ErrNoLeader):
		return fmt.Errorf("%w: %s: %w%s", ErrNotReady, doing, err, n.because(nil))
	case errors.As(err, &wait):
		return fmt.Errorf("mortise: %s: %w%s", doing, wait.Err, n.because(wait.Behind))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("mortise: %s: %w%s", doing, err, n.because(nil))
	}
	return fmt.Errorf("%w (%s)", err, doing)
}

// met is heldError for a caller of this node. The process before this one, under the same name, can still hold the lock.
func (n *Node) met(e *client.HeldError) *HeldError {
	h := heldError(e)
	h.namesake = h.Holder == n.config.Name && !n.isOwn(e.Session)
	return h
}

// because says what a wait waits for, as the end of an error's text: what the node itself waits for, or else who held the lock when
// the request was queued.
func (n *Node) because(behind *client.HeldError) string {
	if waiting := n.Status().Waiting; waiting != "" {
		return " (" + waiting + ")"
	}
	if behind == nil {
		return ""
	}
	h := n.met(behind)
	holder, advice := h.Holder, ""
	switch {
	case n.isOwn(behind.Session):
		holder, advice = "this instance itself", "; to enter a lock again, pass lock.Context(ctx)"
	case h.namesake:
		holder, advice = "another life of "+h.Holder, "; the lock is free when the session of that life ends"
	}
	others := "no other request was waiting"
	switch before := h.Waiters - 1; { // it is counted itself
	case before == 1:
		others = "1 other request was waiting"
	case before > 1:
		others = fmt.Sprintf("%d other requests were waiting", before)
	}
	return fmt.Sprintf(" (when this request was queued, %s held it, since %s, token %d, and %s%s)", holder, h.Since.Format(time.RFC3339), h.Token, others, advice)
}

// isOwn reports whether a session is one of this node's.
func (n *Node) isOwn(id lockfsm.SessionID) bool {
	for _, c := range n.engine.Clients() {
		if c.Status().Session == id {
			return true
		}
	}
	return false
}
