package client

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

func TestATermAtItsBound(t *testing.T) {
	limits.AtMost(t, "maxTerm", uint64(maxTerm), func(n uint64) bool {
		b := newBench(t)
		b.want("1: open nonce 1")
		b.reply(nodeidtest.ID(1), redirect(n, nodeidtest.ID(9)))
		return b.turn() == "9: open nonce 1"
	})
}
