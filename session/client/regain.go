package client

import (
	"context"
	"fmt"
)

// Regain waits until a hold in doubt is good again, and returns nil, or until it has ended, and
// returns the error of Err. If ctx ends first, it returns an error that wraps the error of ctx, and
// after Close it may return ErrClosed.
func (h *Hold) Regain(ctx context.Context) error {
	settled := func(Status) bool { return h.Err() != ErrInJeopardy }
	for {
		if err := h.Err(); err != ErrInJeopardy {
			return err
		}
		waited := h.client.wait(ctx, inputWait, settled)
		if err := h.Err(); err != ErrInJeopardy {
			return err
		}
		switch {
		case waited == ErrClosed:
			return waited
		case waited != nil:
			return fmt.Errorf("mortise: lock %q is in doubt: %w", h.Key(), waited)
		}
	}
}
