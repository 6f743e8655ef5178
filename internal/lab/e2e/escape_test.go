package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// nasty contains characters that clear a terminal, begin a new line, ring the bell, and change the
// direction of writing.
const nasty = "x\x1b[2J\r\n\a\u009b\u202ey"

func TestRawTextIsRefused(t *testing.T) {
	if _, err := mortise.Start(t.Context(), mortise.Config{Name: "a\u202eb"}); err == nil ||
		!strings.Contains(err.Error(),
			`Config.Name: "a\u202eb" contains control characters, marks of the direction of writing`) {
		t.Errorf("Name: %v", err)
	}
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		l := f.lock(0, "k")
		_, err := f.nodes[0].ForceUnlock(brief(t), "k", l.Token(), nasty)
		wantIs(t, err, mortise.ErrBadRequest)
		for _, q := range []*query.EvictRequest{{By: []byte(nasty), Reason: []byte("r")},
			{By: []byte("b"), Reason: []byte(nasty)}} {
			q.Key, q.Token = []byte("k"), uint64(l.Token())
			_, failed := asks(t, f.program(0), query.AdminClient.Evict, q)
			if text := fmt.Sprint(failed); failed == nil || !strings.Contains(text, mortise.ErrBadRequest.Error()) ||
				plain.Lines(text) != text {
				t.Error(failed)
			}
		}
		unlock(t, l)
	})
}

// TestARawReasonIsRefusedByTheLeader sends the constant nasty to the leader from a hostile
// instance, which omits the checks of a correct instance.
func TestARawReasonIsRefusedByTheLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.lock(f.follower(), "k")
		hostile := f.nodes[f.follower()]
		conn, err := hostile.Leader()
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []*query.EvictRequest{{By: []byte(nasty), Reason: []byte("r")},
			{By: []byte("b"), Reason: []byte(nasty)}} {
			q.Key, q.Token = []byte("k"), uint64(l.Token())
			if s, err := queries.Ask(brief(t), query.NewQueryClient(conn), query.QueryClient.Evict, q); err == nil ||
				s.GetHeld() {
				t.Errorf("%q, %q: %+v, %v", q.By, q.Reason, s, err)
			}
		}
		time.Sleep(time.Second)
		if err := l.Err(); err != nil {
			t.Errorf("the hold has ended: %v", err)
		}
		unlock(t, l)
		f.nothingLeft()
	})
}
