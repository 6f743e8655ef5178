package replica

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/session"
)

func TestRecordsAtTheirBounds(t *testing.T) {
	vouched := func(r Record) bool {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return Proof{}.Vouch(b)
	}
	text := func(n int) string { return strings.Repeat("t", n) }
	limits.AtMost(t, "maxNameBytes", maxNameBytes, func(n int) bool { return vouched(Record{Name: text(n)}) })
	limits.AtMost(t, "maxNameBytes of a version", maxNameBytes, func(n int) bool {
		return vouched(Record{Version: text(n)})
	})
	limits.AtMost(t, "maxZoneBytes", maxZoneBytes, func(n int) bool { return vouched(Record{Zone: text(n)}) })
	founders := func(names ...string) bool {
		r := Record{Founders: names}
		r.Settings = Settings{Founders: names}.Named()
		return len(r.founders()) == len(names)
	}
	limits.AtMost(t, "MaxFounderBytes", MaxFounderBytes, func(n int) bool { return founders(text(n)) })
	limits.AtMost(t, "MaxFounders", MaxFounders, func(n int) bool {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("%03d", i))
		}
		return founders(names...)
	})
}

func TestTimesAtTheirBounds(t *testing.T) {
	limits.Below(t, "refusedFor", refusedFor, func(after time.Duration) bool {
		var r Refused
		r.Note(1, &Record{Name: "n"}, session.Outdated{Group: 4, Build: 3})
		return len(r.sentences(clock.Time(1).Add(after))) == 1
	})
}
