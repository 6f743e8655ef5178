package hold

import (
	"math"
	"testing"
	"time"
)

// The pauses never decrease, whatever the first and the longest one are.
func TestPausesOnlyGrow(t *testing.T) {
	for _, first := range []time.Duration{1, time.Second, 100 * 365 * 24 * time.Hour, math.MaxInt64} {
		b, last := backoff{first: first, most: math.MaxInt64}, time.Duration(0)
		for i := range 100 {
			next := b.next(0)
			if next < first || next < last {
				t.Fatalf("the first pause is %v: pause %d is %v after %v", first, i, next, last)
			}
			last = next
		}
		if last != math.MaxInt64 {
			t.Errorf("the first pause is %v: the last is %v", first, last)
		}
	}
}
