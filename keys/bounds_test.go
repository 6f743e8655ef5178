package keys

import (
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestKeysAtTheirBound(t *testing.T) {
	limits.AtMost(t, "maxBytes", maxBytes, func(n int) bool {
		key, err := Join("a", strings.Repeat("k", n-2))
		return err == nil && len(key) == n
	})
	limits.AtMost(t, "maxBytes, escaped", maxBytes/3, func(n int) bool {
		key, err := Join(strings.Repeat("/", n))
		return err == nil && len(key) == 3*n
	})
}
