package mortisegocron

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/tick"
)

// The schedule has a tick every minute, and Late is 5 s. Times are in seconds after a tick at which
// the Locker exists.
func TestTurns(t *testing.T) {
	const none = -1
	type call struct {
		at   float64
		tick float64 // none means outside of the schedule
		err  error
	}
	for what, calls := range map[string][]call{
		"at each tick":           {{60, 60, nil}, {120, 120, nil}, {180, 180, nil}},
		"a little early":         {{59.5, 60, nil}, {119.9, 120, nil}},
		"RunNow":                 {{60, 60, nil}, {80, none, nil}, {105, none, nil}, {120, 120, nil}},
		"RunNow in a new Locker": {{7, none, nil}, {37, none, nil}, {60, 60, nil}},
		"RunNow beside a tick":   {{60, 60, nil}, {63, 0, ErrSameName}, {120, 120, nil}},
		"late":                   {{60, 60, nil}, {147, 120, nil}, {180, 180, nil}},
		"another phase":          {{87, 60, nil}, {147, 120, nil}, {207, 180, nil}},
		"some ticks":             {{60, 60, nil}, {360, 360, nil}, {660, 660, nil}},
		"two jobs of one name":   {{60, 60, nil}, {60.001, 0, ErrSameName}, {120, 120, nil}, {120, 0, ErrSameName}},
		"a shorter period": {{17, none, nil}, {37, none, nil}, {57, 60, nil}, {77, 0, ErrOtherSchedule},
			{97, 0, ErrOtherSchedule}, {117, 120, nil}},
		"a shorter period at the ticks": {{60, 60, nil}, {80, none, nil}, {100, 0, ErrOtherSchedule}, {120, 120, nil},
			{140, 0, ErrOtherSchedule}},
		"a longer period": {{90, 60, nil}, {180, 180, nil}, {270, 240, nil}},
	} {
		t.Run(what, func(t *testing.T) {
			born := time.Date(2026, 5, 4, 10, 0, 0, 1, time.UTC)
			at := func(seconds float64) time.Time {
				return born.Add(time.Duration(seconds*1000) * time.Millisecond).Truncate(time.Millisecond)
			}
			a := &asked{}
			for i, c := range calls {
				now := at(c.at)
				near, gap, err := nearest(tick.Every(time.Minute), now)
				if err != nil {
					t.Fatal(err)
				}
				before, _ := last(tick.Every(time.Minute), now)
				got, err := a.turn(now, near, before, born, 5*time.Second, gap)
				want := turn{}
				switch {
				case c.err != nil:
				case c.tick == none:
					want = turn{now, "+" + name(now.Round(5*time.Second))}
				default:
					want = tickOf(at(c.tick))
				}
				if got != want || !errors.Is(err, c.err) {
					t.Errorf("call %d at %v: %+v, %v, want %+v, %v", i, c.at, got, err, want, c.err)
				}
			}
		})
	}
}
