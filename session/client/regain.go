package client

import (
	"context"
	"fmt"
)

// Regain waits until a hold in doubt is good again, and returns nil, or until it has ended, and
// returns the error of Err. If ctx ends first, it returns an error that wraps the error of ctx. It
// returns ErrLeaving after Leaving, and after Close it may return ErrClosed.
func (h *Hold) Regain(ctx context.Context) error {
	leaving := false
	settled := func(Status) bool { // on the client's goroutine
		leaving = h.client.core.ending.leaving
		return leaving || h.Err() != ErrInJeopardy
	}
	for {
		if err := h.Err(); err != ErrInJeopardy {
			return err
		}
		waited := h.client.wait(ctx, inputWait, settled)
		switch err := h.Err(); {
		case err != ErrInJeopardy:
			return err
		case waited == ErrClosed:
			return waited
		case waited != nil:
			return fmt.Errorf("mortise: lock %q is in doubt: %w", h.Key(), waited)
		case leaving:
			return ErrLeaving
		}
	}
}
