package shard

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

// What another instance says about itself has the bounds of Work.
func TestMembersAtTheirBounds(t *testing.T) {
	limits.AtMost(t, "maxWeight", maxWeight, func(n int) bool {
		_, ok := parseMember(memberValue(n, 1, "m"))
		return ok
	})
	limits.AtMost(t, "maxCount", maxCount, func(n int) bool {
		_, ok := parseMember(memberValue(1, n, "m"))
		return ok
	})
	limits.Below(t, "maxCount, as an index", maxCount, func(n int) bool {
		_, ok := indexOf(shardKey("s", n), "s", maxCount)
		return ok
	})
}
