package trace

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/session/client"
)

// Lost must not be called before Acquired has returned, and never for a call that was not granted
// the lock.
func TestALossBeforeTheGrantIsToldIsToldAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []Event
		tracer := New(Config{
			Hooks: Hooks{Lost: func(e Event) { told = append(told, e) }},
			Clock: clock.Monotonic(), Logger: slog.New(slog.DiscardHandler),
		})
		calls := map[string]*Call{}
		for _, name := range []string{"early", "late", "never"} {
			calls[name] = tracer.Start(t.Context(), Asked{Part: modes.Part{Key: name}})
			calls[name].Asks(&client.Request{Key: name}, new(client.Hold))
		}
		calls["early"].isLost(client.LossLease, client.ErrLost)
		calls["never"].isLost(client.LossForced, client.ErrLost)
		calls["never"].Answered(errors.New("no"))
		calls["never"].Refused(t.Context(), errors.New("no"))
		synctest.Wait()
		if len(told) != 0 {
			t.Fatalf("%+v", told)
		}
		calls["early"].Granted(t.Context())
		calls["late"].Granted(t.Context())
		calls["late"].isLost(client.LossExpired, client.ErrLost)
		synctest.Wait()
		if len(told) != 2 || told[0].Part.Key != "early" || told[0].Loss != client.LossLease ||
			told[1].Loss != client.LossExpired {
			t.Errorf("%+v", told)
		}
	})
}

func TestWithoutObservers(t *testing.T) {
	tracer := New(Config{Clock: clock.Monotonic()})
	if tracer != nil {
		t.Fatal("the tracer without observers is not nil")
	}
	var hold client.Hold
	allocations := testing.AllocsPerRun(100, func() {
		call := tracer.Start(t.Context(), Asked{Part: modes.Part{Key: "k"}})
		call.Asks(&client.Request{Key: "k"}, &hold)
		call.Answered(nil)
		call.Granted(t.Context())
		call.Entered(t.Context(), call, 1)
		call.Refused(t.Context(), nil)
		call.Released(t.Context(), call.Releasing(Release{Last: true, First: true}), nil)
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
	tracer.Later(func() { t.Error("a hook is called") })
	if err := tracer.Close(); err != nil || tracer.Dropped() != 0 || tracer.History() != nil {
		t.Errorf("%v", err)
	}
}
