package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// An operator ends the session of an instance that is cut off: the next waiter need not wait for
// the TTL, except for the lock delay of a hold, and the audit log has the reason. The instance
// loses all its locks, and works on under another session.
func TestEndSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, func(c *mortise.Config) { c.SessionTTL = time.Minute })
		leader := f.leader()
		cut := (leader + 1) % 3
		n, other := f.nodes[cut], f.nodes[(leader+2)%3]
		plainly, err := n.Lock(brief(t), "plain")
		if err != nil {
			t.Fatal(err)
		}
		delayed, err := n.Acquire(brief(t), mortise.Request{Key: "delayed", LockDelay: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		session := f.peek(leader, "plain").Queue[0].Session
		for _, wrong := range []string{"", "0", "x", "-1"} {
			if _, err := other.EndSession(brief(t), wrong, "why"); !errors.Is(err, mortise.ErrBadRequest) {
				t.Errorf("session %q: %v", wrong, err)
			}
		}
		if ended, err := other.EndSession(brief(t), "42", "why"); ended || err != nil {
			t.Errorf("a session that never was: %v, %v", ended, err)
		}
		f.isolate(cut)
		began := time.Now()
		if ended, err := other.EndSession(brief(t), session, "it hangs"); !ended || err != nil {
			t.Fatal(ended, err)
		}
		next, err := other.Lock(brief(t), "plain")
		if took := time.Since(began); err != nil || took > time.Second {
			t.Fatalf("the next holder waited %v: %v", took, err)
		}
		// A second call neither shortens the delay nor makes it longer.
		time.Sleep(3 * time.Second)
		if ended, err := other.EndSession(brief(t), session, "once more"); ended || err != nil {
			t.Fatal(ended, err)
		}
		after, err := other.Lock(brief(t), "delayed")
		if took := time.Since(began); err != nil || took < 5*time.Second || took > 6*time.Second {
			t.Fatalf("the lock with a delay was granted after %v: %v", took, err)
		}
		causes := map[mortise.Outcome]int{}
		ends, err := other.Audit(brief(t))
		for _, e := range ends {
			if causes[e.Cause]++; e.Cause == mortise.OutcomeForced && (e.By != other.config.Name ||
				e.Reason != "it hangs") {
				t.Errorf("%+v", e)
			}
		}
		if err != nil || causes[mortise.OutcomeForced] != 2 || causes[mortise.OutcomeExpired] != 1 {
			t.Errorf("the audit log has %v, %v", ends, err)
		}
		f.rejoin(cut)
		time.Sleep(5 * time.Second)
		for _, l := range []*mortise.Lock{plainly, delayed} {
			if !errors.Is(l.Err(), mortise.ErrLost) {
				t.Errorf("the holder learns %v", l.Err())
			}
		}
		for _, l := range []*mortise.Lock{next, after} {
			if err := l.Unlock(brief(t)); err != nil {
				t.Error(err)
			}
		}
		again, err := n.Lock(brief(t), "plain")
		if err != nil {
			t.Fatalf("the instance does not work on: %v", err)
		}
		if f.peek(leader, "plain").Queue[0].Session == session {
			t.Error("the session goes on")
		}
		if err := again.Unlock(brief(t)); err != nil {
			t.Error(err)
		}
	})
}
