package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

// This file checks what a request of the HTTP API asks for.

const (
	maxName  = 256
	answerIn = 3 * time.Second // of the leader, for a request that does not wait
)

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", mortise.ErrBadRequest, fmt.Sprintf(format, args...))
}

func span(name string, seconds *float64, fallback time.Duration) (time.Duration, error) {
	switch {
	case seconds == nil:
		return fallback, nil
	case *seconds < 0 || *seconds > math.MaxInt64/float64(time.Second)/2:
		return 0, bad("%s %v is not a valid number of seconds", name, *seconds)
	}
	return time.Duration(*seconds * float64(time.Second)), nil
}

// waiting returns a context that ends after wait_seconds. Nil means no limit, and zero leaves time
// for an answer only.
func waiting(ctx context.Context, seconds *float64) (context.Context, context.CancelFunc, error) {
	wait, err := span("wait_seconds", seconds, 0)
	switch {
	case err != nil:
		return nil, nil, err
	case seconds == nil:
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	case wait == 0:
		wait = answerIn
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	return ctx, cancel, nil
}

func checkName(name string) error {
	if len(name) > maxName || !plain.Is(name) {
		return bad("name %q has more than %d bytes, or %s", name, maxName, plain.NotText)
	}
	return nil
}
