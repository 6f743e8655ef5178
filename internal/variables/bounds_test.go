package variables

import (
	"strconv"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestBytesAtTheirBound(t *testing.T) {
	limits.AtMost(t, "maxBytes", int64(maxBytes), func(n int64) bool {
		r, _ := New("BOUND", []string{"BOUND_BYTES=" + strconv.FormatInt(n, 10)})
		return r.Bytes("BYTES") == n && r.Err() == nil
	})
}
