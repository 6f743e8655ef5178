package grpclock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseserver/internal/serial"
)

// TestEachReasonHasItsCode checks the status for each reason.
func TestEachReasonHasItsCode(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer stop()
	for _, row := range []struct {
		ctx    context.Context
		reason serial.Reason
		code   codes.Code
		text   string
	}{
		{t.Context(), serial.Busy, codes.ResourceExhausted, "grpclock: another call is handled"},
		{t.Context(), serial.Away, codes.Unavailable, "grpclock: the lock cannot be had now"},
		{canceled, serial.Ended, codes.Canceled, "context canceled"},
		{late, serial.Ended, codes.DeadlineExceeded, "context deadline exceeded"},
		{t.Context(), serial.BadKey, codes.InvalidArgument, "grpclock: the key of the lock is not valid"},
		{t.Context(), serial.Mistake, codes.Internal, "grpclock: the request for the lock was refused"},
	} {
		if s := status.Convert(refusal(row.ctx, row.reason)); s.Code() != row.code || s.Message() != row.text {
			t.Errorf("%d: %v, want %v %q", row.reason, s, row.code, row.text)
		}
	}
}

// TestErrorsOfTheContextOfALock checks which errors of a handler come from the end of its lock, so
// that the client may call again.
func TestErrorsOfTheContextOfALock(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, context.Canceled: true, mortise.ErrLost: true, mortise.ErrLeaving: true,
		context.DeadlineExceeded: false, errors.New("x"): false, mortise.ErrHeld: false,
		fmt.Errorf("so: %w", mortise.ErrLost): true, status.Error(codes.Canceled, "x"): true,
		status.Error(codes.Unavailable, "x"): false,
	} {
		if ofContext(err) != want {
			t.Errorf("%v: %v, want %v", err, !want, want)
		}
	}
}
