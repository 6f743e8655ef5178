package voters

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestASurplusAtItsBound(t *testing.T) {
	limits.Below(t, "surplusAfter", surplusAfter, func(after time.Duration) bool {
		c := crowd{found: Surplus{Running: 4}, since: time.Hour}
		return c.surplus(time.Hour+after) == nil
	})
}

func TestANewLeaderAtItsBound(t *testing.T) {
	limits.Below(t, "heardWithin", heardWithin, func(silent time.Duration) bool {
		v := scene(t, "a* x/unheard c", three)
		v.Replicas[1].SilentFor = silent
		_, why := Heir(v, "x")
		return why == Fit
	})
}
