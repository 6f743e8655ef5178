package tick

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestANameAtItsBound(t *testing.T) {
	limits.AtMost(t, "maxName", maxName, func(n int) bool {
		_, err := Job{Name: strings.Repeat("n", n), Schedule: Every(time.Minute),
			Run: func(context.Context, Tick) error { return nil }}.withDefaults()
		return err == nil
	})
}
