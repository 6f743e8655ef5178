package mortiseotel

import (
	"reflect"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/mortise-lock/mortise"
)

func TestOldestHold(t *testing.T) {
	var r running
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	want := func(now int, ages map[string]float64) {
		t.Helper()
		if got := r.oldest(at(now)); !reflect.DeepEqual(got, ages) {
			t.Errorf("after %d s: %v, want %v", now, got, ages)
		}
	}
	want(0, map[string]float64{})
	r.begin(1, "orders", at(0))
	r.begin(2, "orders", at(5))
	r.begin(3, "stock", at(6))
	want(10, map[string]float64{"orders": 10, "stock": 4})
	r.end(1)
	r.end(3)
	r.end(3)
	want(20, map[string]float64{"orders": 15, "stock": 0})
	for token := mortise.Token(10); token < 10+2*maxHolds; token++ {
		r.begin(token, "stock", at(20))
	}
	if n := len(r.holds); n > maxHolds {
		t.Errorf("%d holds are remembered", n)
	}
}

// Only a hold that is not long by design is running, until its last handle is unlocked or it is
// lost.
func TestWhichHoldsAreRunning(t *testing.T) {
	telemetry, err := New(Options{MeterProvider: noop.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		outcome mortise.Outcome
		purpose string
		end     func(e mortise.LockEvent)
		runs    bool
		after   bool
	}{
		{mortise.OutcomeGranted, "", func(mortise.LockEvent) {}, true, true},
		{mortise.OutcomeGranted, "job", func(mortise.LockEvent) {}, false, false},
		{mortise.OutcomeHeld, "", func(mortise.LockEvent) {}, false, false},
		{mortise.OutcomeEntered, "", func(mortise.LockEvent) {}, false, false},
		{mortise.OutcomeGranted, "", telemetry.lost, true, false},
		{mortise.OutcomeGranted, "", func(e mortise.LockEvent) {
			e.Outcome = mortise.OutcomeLeft
			telemetry.unlocked(t.Context(), e)
		}, true, true},
		{mortise.OutcomeGranted, "", func(e mortise.LockEvent) {
			e.Outcome = mortise.OutcomeConfirmed
			telemetry.unlocked(t.Context(), e)
		}, true, false},
	} {
		telemetry.running = running{}
		e := mortise.LockEvent{Part: mortise.Part{Key: "k"}, Token: 5, Outcome: c.outcome, Purpose: c.purpose}
		telemetry.acquired(t.Context(), e)
		runs := len(telemetry.running.holds) == 1
		c.end(e)
		if after := len(telemetry.running.holds) == 1; runs != c.runs || after != c.after {
			t.Errorf("%s %q: runs %v, and then %v", c.outcome, c.purpose, runs, after)
		}
	}
}
