package client

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mortise-lock/mortise/lockfsm"
)

// This file gives holds weaker modes. The core sends a downgrade again after each Attach until
// it is answered.

// Downgrade gives the keys of a hold these modes, in the order of its [Hold.Grant], and keeps its
// token; see lockfsm.Downgrade and lockfsm.Grant.Readers. The client owns modes. A later downgrade
// changes nothing. From the call on, the caller must act according to the new modes, even if
// Downgrade returns an error. There are two exceptions, after which the hold is as before:
// ErrUnsupported if the group does not support it, and ErrNotHeld if the present mode of a key
// does not cover the new one, or if the hold is one of a semaphore. The context limits only the
// wait for the confirmation. Downgrade returns nil once the group has changed the modes. It
// returns the error of Err if the hold has ended, and an error that wraps the error of ctx if ctx
// has. A second call waits for the same confirmation. The hold must not be a pass.
func (h *Hold) Downgrade(ctx context.Context, modes []lockfsm.Mode) error {
	if err := h.Err(); err != nil {
		return err
	}
	answer, err := h.startDowngrade(modes)
	if err != nil {
		return err
	}
	select {
	case <-answer:
		return h.answer()
	case <-h.Done():
		return cmp.Or(h.Err(), ErrInJeopardy) // if the hold is good again, it was in doubt
	case <-ctx.Done():
		return fmt.Errorf("mortise: lock %q is being downgraded, but this is not yet confirmed: %w", h.Key(),
			ContextError(ctx))
	}
}

// DowngradeSoon is like Downgrade, and does not wait. It also applies to a hold in doubt.
func (h *Hold) DowngradeSoon(modes []lockfsm.Mode) { _, _ = h.startDowngrade(modes) }

func (h *Hold) startDowngrade(modes []lockfsm.Mode) (answer chan error, err error) {
	if err := h.Err(); err != nil && err != ErrInJeopardy {
		return nil, err
	}
	h.mu.Lock()
	if ended := h.ended(); h.seldom().lowered != nil || ended != nil && ended != ErrInJeopardy {
		defer h.mu.Unlock()
		return h.slot, ended
	}
	h.rarely().lowered, h.slot = &lowering{modes, h.req.Grant().Lowered(modes)}, make(chan error)
	answer = h.slot
	h.mu.Unlock()
	if !h.client.post(input{kind: inputDowngrade, hold: h}) {
		return nil, ErrClosed
	}
	return answer, nil
}

// downgraded passes the answer of the group to the callers of Downgrade.
func (h *Hold) downgraded(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released {
		return // slot belongs to Release
	}
	if h.rare.result = err; err != nil { // startDowngrade has set rare
		h.rare.lowered = nil
	}
	close(h.slot)
}

// answer returns the result of a downgrade. If the hold has ended since, it returns the reason.
func (h *Hold) answer() error {
	_ = h.Err() // it notes an end by the clock
	h.mu.Lock()
	defer h.mu.Unlock()
	if ended := h.ended(); ended != nil {
		return ended
	}
	return h.seldom().result
}
