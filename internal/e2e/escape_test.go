package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/desk"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
)

// nasty has what clears a terminal, begins a line, rings, and turns the direction of writing.
const nasty = "x\x1b[2J\r\n\a\u009b\u202ey"

// Where only ordinary text belongs nothing else enters.
func TestRawTextIsRefused(t *testing.T) {
	if _, err := mortise.Start(t.Context(), mortise.Config{Name: "a\u202eb"}); err == nil || !strings.Contains(err.Error(), `Config.Name: "a\u202eb" is not UTF-8 text without control characters and marks`) {
		t.Errorf("Name: %v", err)
	}
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		l := f.lock(0, "k")
		_, err := f.nodes[0].ForceUnlock(brief(t), "k", l.Token(), nasty)
		wantIs(t, err, mortise.ErrBadRequest)
		for _, q := range []desk.Question{{By: nasty, Reason: "r"}, {By: "b", Reason: nasty}} {
			q.Op, q.Key, q.Token = desk.Evict, "k", uint64(l.Token())
			if a := f.desks(0, q); !strings.Contains(a.Error, mortise.ErrBadRequest.Error()) || plain.Lines(a.Error) != a.Error {
				t.Errorf("%+v", a)
			}
		}
		unlock(t, l)
	})
}

// A hostile instance asks the leader itself, and leaves the checks of its own side out.
func TestARawReasonIsRefusedByTheLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.lock(f.follower(), "k")
		hostile := f.nodes[f.follower()]
		for _, q := range []replica.Question{{By: nasty, Reason: "r"}, {By: "b", Reason: nasty}} {
			q.Op, q.Key, q.Token = replica.OpEvict, "k", uint64(l.Token())
			if s, err := hostile.LookOnce(brief(t), q); err == nil || s.Held {
				t.Errorf("%q, %q: %+v, %v", q.By, q.Reason, s, err)
			}
		}
		time.Sleep(time.Second) // fake time
		if err := l.Err(); err != nil {
			t.Errorf("the hold has ended: %v", err)
		}
		unlock(t, l)
		f.nothingLeft()
	})
}
