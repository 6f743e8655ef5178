package mortiseotel_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/pages"
)

// Calls that wait for a lock that is held long by design are counted separately, so that
// MortiseStuck ignores them. Their waits have a separate kind, which MortiseQueueLong excludes.
// Unknown purposes must not create additional series.
func TestCandidatesAreNoAlarm(t *testing.T) {
	r := newRig(t)
	labels := func(purpose string) map[string]string { return map[string]string{"mortise.purpose": purpose} }
	leads := r.acquire(t, t.Context(), mortise.Request{Key: "leader", Labels: labels("election")})
	next := make(chan *mortise.Lock)
	go func() {
		l, err := r.node.Acquire(t.Context(), mortise.Request{Key: "leader", Labels: labels("election")})
		if err != nil {
			t.Error(err)
		}
		next <- l
	}()
	for end := time.Now().Add(10 * time.Second); r.value(t, "mortise_lock_standby", "",
		"") != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the candidate is not counted")
		}
	}
	for end := time.Now().Add(10 * time.Second); r.node.Status().Waiters != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the candidate does not wait")
		}
	}
	if n := r.value(t, "mortise_lock_waiters", "", ""); n != 0 {
		t.Errorf("%v calls wait, besides the candidate", n)
	}
	unlock(t, leads)
	unlock(t, <-next)
	unlock(t, r.acquire(t, t.Context(), mortise.Request{Key: "other", Labels: labels("anything")}))
	if e, other := r.value(t, "mortise_lock_wait_duration_seconds", "kind", "election"),
		r.value(t, "mortise_lock_wait_duration_seconds", "kind", "anything"); e != 2 || other != 0 {
		t.Errorf("%v waits of an election and %v of another kind", e, other)
	}
	if !slices.ContainsFunc(pages.Alerts(), func(a pages.Alert) bool {
		return a.Name == "MortiseQueueLong" && strings.Contains(a.Expr, `kind!~"election|tick|job"`)
	}) {
		t.Error("MortiseQueueLong counts the waits of candidates")
	}
}
