package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestIdentitiesAtTheirBounds(t *testing.T) {
	reads := func(id identity) bool {
		id.Life, id.Since = 1, 1
		got, err := decodeIdentity(id.append(nil))
		return err == nil && got == id
	}
	limits.AtMost(t, "maxLabelBytes", maxLabelBytes, func(n int) bool {
		return reads(identity{Label: strings.Repeat("l", n)})
	})
	limits.AtMost(t, "MaxNameBytes", gossip.MaxNameBytes, func(n int) bool {
		return reads(identity{Name: strings.Repeat("n", n)})
	})
	limits.AtMost(t, "maxSiteBytes", maxSiteBytes, func(n int) bool {
		return reads(identity{Row: Row{Site: strings.Repeat("s", n)}})
	})
	limits.AtMost(t, "maxRecordBytes", maxRecordBytes, func(n int) bool {
		content, err := unseal("r", seal(make([]byte, n-len(seal(nil)))))
		return err == nil && len(content) > 0
	})
}

// What lasts less long is not said, and is said from then on.
func TestSilencesAtTheirBounds(t *testing.T) {
	unsaid := func(l loss, r *voters.Report) func(gone time.Duration) bool {
		return func(gone time.Duration) bool {
			var lines []alarm
			each := l
			each.log(each.since+gone, r, &lines)
			return len(lines) == 0
		}
	}
	l := loss{since: time.Hour}
	limits.Below(t, "silentAfter", silentAfter, unsaid(l, &voters.Report{Missing: []voters.Missing{{}}}))
	limits.Below(t, "backWithin", backWithin, unsaid(l, &voters.Report{}))
	limits.AtMost(t, "rejoinPause", rejoinPause, func(after time.Duration) bool {
		var f finder
		f.tried = map[string]time.Duration{"a:1": time.Hour}
		f.met("a:1", time.Hour+after)
		return len(f.now) == 0
	})
}
