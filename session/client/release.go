package client

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file releases holds, and waits for the confirmation.

// Release releases the lock, even if ctx has ended. The context limits only the wait for the
// confirmation. After Release has returned, even with an error, the caller does not hold the lock.
// It returns nil once the release is confirmed, an error that matches ErrLost if the lock was lost
// before, ErrClosed after Close, or an error that wraps the error of ctx. A second call waits for
// the same confirmation.
func (h *Hold) Release(ctx context.Context) error {
	return h.letGo(ctx, input{kind: inputRelease, hold: h})
}

// Detach is like Release, except that a hold with a delay remains in the group for that delay and
// can be resumed. A resumed hold without a delay of its own keeps the earlier delay. If Release and
// Detach are both called, only the first call has an effect.
func (h *Hold) Detach(ctx context.Context) error {
	return h.letGo(ctx, input{kind: inputDetach, hold: h})
}

func (h *Hold) letGo(ctx context.Context, how input) error {
	if h.pass != nil {
		return h.client.unlockKept(h, "")
	}
	answer, settled := h.startRelease(how)
	if answer == nil {
		return settled
	}
	select {
	case err := <-answer:
		return h.told(answer, err)
	default:
	}
	select {
	case err := <-answer:
		return h.told(answer, err)
	case <-ctx.Done():
		return fmt.Errorf("mortise: lock %q was released, but this is not yet confirmed: %w", h.Key(), ContextError(ctx))
	}
}

// ReleaseSoon releases the lock without waiting for the confirmation. It returns an error that
// matches ErrLost if the lock was lost before, and otherwise nil.
func (h *Hold) ReleaseSoon() error {
	return h.letGoSoon(input{kind: inputRelease, hold: h})
}

// Lapse is like Detach, for a hold whose holder has ended without a release. The group records
// that the hold expired. It also records the reason why, up to a length of lockfsm.MaxValueBytes.
// Lapse does not wait, and returns the same errors as ReleaseSoon. The lock of a pass is kept as
// after its release.
func (h *Hold) Lapse(why string) error {
	why = plain.Cut(why, lockfsm.MaxValueBytes)
	if h.pass != nil {
		return h.client.unlockKept(h, why)
	}
	return h.letGoSoon(input{kind: inputDetach, hold: h, bytes: []byte(why)})
}

func (h *Hold) letGoSoon(how input) error {
	if h.pass != nil {
		return h.client.unlockKept(h, "")
	}
	_ = h.Err() // records a loss before the release hides it
	_, _ = h.startRelease(how)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch ended := h.ended(); {
	case ended != ErrReleased:
		return ended
	case h.seldom().until != 0:
		return ErrLost // released in doubt: whether it was held is not known
	}
	return nil
}

// startRelease starts the release if it has not begun. It returns the channel that passes the
// result of the release, or nil and the result if the release has ended. It does not check the
// deadline. The client's goroutine does that.
func (h *Hold) startRelease(how input) (answer chan error, settled error) {
	h.mu.Lock()
	if h.released {
		defer h.mu.Unlock()
		if h.settled {
			return nil, h.seldom().result
		}
		h.rarely().sharers++
		return h.slot, nil
	}
	h.released, h.slot = true, h.client.slot()
	answer = h.slot
	err := h.endIn(ErrReleased, 0, 0)
	h.mu.Unlock()
	if err != ErrReleased {
		h.settle(err)
	} else if !h.client.post(how) {
		h.settle(ErrClosed)
	}
	return answer, nil
}

// A caller that has received the result calls told, which passes it on to the next caller that
// waits on the same slot. The last caller returns the slot to the pool, unless a caller has
// stopped waiting.
func (h *Hold) told(answer chan error, result error) error {
	h.mu.Lock()
	shared := h.seldom().sharers > 0
	if shared {
		h.rare.sharers--
	}
	h.mu.Unlock()
	if shared {
		answer <- result
	} else {
		h.client.slots.Put(answer)
	}
	return result
}
