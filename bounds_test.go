package mortise

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/session/client"
)

// A mark is stored whole or not at all.
func TestAMarkAtItsBound(t *testing.T) {
	limits.AtMost(t, "maxMarkBytes", maxMarkBytes, func(n int) bool {
		var s client.Request
		new(demand).mark(make([]byte, n), &s)
		return s.Terms != nil && len(shown.MarkOf(s.Terms.Value)) == n
	})
}
