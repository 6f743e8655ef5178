package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

func TestHooksHearOfSessionsOfTheUsersOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, ears := hookedFleet(t, 3)
		leader := f.leader()
		a, b := (leader+1)%3, (leader+2)%3
		for _, ear := range ears {
			ear.of()
		}
		s, err := f.nodes[a].NewSession(t.Context(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		sessions, err := f.nodes[a].Sessions(brief(t))
		if err != nil {
			t.Fatal(err)
		}
		id := sessions[slices.IndexFunc(sessions, func(each mortise.SessionInfo) bool {
			return each.Instance == "" && each.TTL == s.TTL()
		})].Session
		l, err := s.Acquire(t.Context(), mortise.Request{Key: "saga", LockDelay: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		ears[a].mu.Lock()
		own := 0
		for _, e := range ears[a].nodes {
			if e.Session == id && (e.State == mortise.RenewalAcknowledged || e.State == mortise.SessionOpened) {
				own++
			}
		}
		ears[a].mu.Unlock()
		if own < 5 {
			t.Errorf("%d of its events in five seconds: %+v", own, ears[a].nodes)
		}
		if s := f.nodes[a].Status(); s.LeaseFor > time.Second {
			t.Errorf("of the lease of 1 s %v is left", s.LeaseFor)
		}
		if err := l.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e := ears[a].last(t); e.Outcome != mortise.OutcomeDetached || e.Token != l.Token() ||
			e.Held < 4*time.Second {
			t.Errorf("%+v", e)
		}
		taken := f.acquire(b, resuming{key: "saga", token: l.Token()})
		if e := ears[b].last(t); e.Outcome != mortise.OutcomeGranted || e.Key != "saga" ||
			e.Token != taken.Token() {
			t.Errorf("%+v", e)
		}
		again := f.acquire(a, resuming{key: "saga", token: taken.Token()})
		time.Sleep(time.Second)
		if got := ears[b].of("lost"); !slices.Equal(got, []string{"lost resumed"}) {
			t.Errorf("%q", got)
		}
		if _, err := f.nodes[b].Resume(t.Context(), "saga", l.Token(), mortise.ResumeOptions{}); err == nil ||
			ears[b].last(t).Outcome != mortise.OutcomeNotHeld {
			t.Errorf("%v, %+v", err, ears[b].last(t))
		}
		unlock(t, again)
		ears[a].of()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ears[a].of("session", "available"); !slices.Equal(got, []string{"session closed"}) {
			t.Errorf("%q", got)
		}
		f.nothingLeft()
	})
}
