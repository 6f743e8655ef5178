package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

func TestSessionsThatEndFirst(t *testing.T) {
	var all []mortise.SessionInfo
	for i := range 20 {
		all = append(all, mortise.SessionInfo{Member: mortise.Member{Session: fmt.Sprint(i)}, TTL: 10 * time.Second,
			Left: time.Duration(20-i%20) * time.Second / 2})
	}
	all = append(all, mortise.SessionInfo{Member: mortise.Member{Session: "short"}, TTL: time.Second,
		Left: 900 * time.Millisecond})
	shown, others := leasesOf(all)
	if len(shown) != maxLease || others != 21-maxLease || shown[0].Session != "19" || shown[1].Session != "18" ||
		shown[0].Left != 0.5 {
		t.Errorf("%d others, %+v", others, shown)
	}
	if none, others := leasesOf(nil); none == nil || len(none) != 0 || others != 0 {
		t.Errorf("%+v, %d", none, others)
	}
}
