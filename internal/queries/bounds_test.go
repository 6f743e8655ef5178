package queries

import (
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

func TestAnEvictAtItsBounds(t *testing.T) {
	limits.AtMost(t, "maxByBytes", maxByBytes, func(n int) bool {
		return CheckEvict(&query.EvictRequest{Key: []byte("k"), Token: 1, By: []byte(strings.Repeat("b", n))}) == nil
	})
	limits.AtMost(t, "MaxValueBytes", lockfsm.MaxValueBytes, func(n int) bool {
		return CheckEvict(&query.EvictRequest{Key: []byte("k"), Token: 1, By: []byte("b"),
			Reason: []byte(strings.Repeat("r", n))}) == nil
	})
}
