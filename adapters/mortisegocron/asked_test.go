package mortisegocron

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/tick"
)

// TestTurns asks a Locker at times in seconds after a tick. The Locker is made a nanosecond after
// that tick. Without other settings there is a tick every minute, and Late is 5 s.
func TestTurns(t *testing.T) {
	const none = -1
	type call struct {
		at   float64
		tick float64 // none means outside of the schedule
		err  error
	}
	type asks struct {
		every time.Duration
		late  time.Duration
		limit time.Duration // of the call; zero means 5 s
		calls []call
	}
	other, same := ErrOtherSchedule, ErrSameName
	for what, c := range map[string]asks{
		"at each tick":           {calls: []call{{60, 60, nil}, {120, 120, nil}, {180, 180, nil}}},
		"a little early":         {calls: []call{{59.5, 60, nil}, {119.9, 120, nil}}},
		"RunNow":                 {calls: []call{{60, 60, nil}, {80, none, nil}, {105, none, nil}, {120, 120, nil}}},
		"RunNow in a new Locker": {calls: []call{{7, none, nil}, {37, none, nil}, {60, 60, nil}}},
		"RunNow beside a tick":   {calls: []call{{60, 60, nil}, {63, 0, same}, {120, 120, nil}}},
		"late":                   {calls: []call{{60, 60, nil}, {147, 120, nil}, {180, 180, nil}}},
		"late, nearer to the next tick": {calls: []call{{60, 60, nil}, {154, 120, nil}, {160, none, nil},
			{180, 180, nil}}},
		"another phase": {calls: []call{{87, 60, nil}, {147, 120, nil}, {207, 180, nil}}},
		"some ticks":    {calls: []call{{60, 60, nil}, {360, 360, nil}, {660, 660, nil}}},
		"two jobs of one name": {calls: []call{{60, 60, nil}, {60.001, 0, same}, {120, 120, nil},
			{120, 0, same}}},
		"a shorter period": {calls: []call{{17, none, nil}, {37, none, nil}, {57, 60, nil}, {77, 0, other},
			{97, 0, other}, {117, 120, nil}}},
		"a shorter period at the ticks": {calls: []call{{60, 60, nil}, {80, none, nil}, {100, 0, other},
			{120, 120, nil}, {140, 0, other}}},
		"a longer period":     {calls: []call{{90, 60, nil}, {180, 180, nil}, {270, 240, nil}}},
		"early by Late":       {calls: []call{{55, 60, nil}}},
		"early by more":       {calls: []call{{54.999, none, nil}}},
		"late by Late":        {calls: []call{{60, 60, nil}, {125, 120, nil}}},
		"late by more":        {calls: []call{{60, 60, nil}, {120, 120, nil}, {125.001, none, nil}}},
		"asked again by Late": {calls: []call{{60, 60, nil}, {65, 60, nil}}},
		"asked again earlier": {calls: []call{{60, 60, nil}, {64.999, 0, same}}},
		"asked again after a quarter of the gap": {late: 20 * time.Second, limit: 20 * time.Second,
			calls: []call{{60, 60, nil}, {75, 60, nil}}},
		"asked again in a quarter of the gap": {late: 20 * time.Second, limit: 20 * time.Second,
			calls: []call{{60, 60, nil}, {74.999, 0, same}}},
		"Late is half of the gap": {late: time.Hour, limit: 30 * time.Second,
			calls: []call{{60, 60, nil}, {89.9, 60, nil}, {90.1, 120, nil}}},
		"a negative Late":            {late: -1, calls: []call{{60, 60, nil}, {125, 120, nil}, {126, none, nil}}},
		"the tick before the Locker": {calls: []call{{20, none, nil}}},
		"the first tick after it":    {calls: []call{{80, 60, nil}}},
		"a period of 10 s": {every: time.Hour,
			calls: []call{{10, none, nil}, {20, none, nil}, {30.099, 0, other}}},
		"no period of 10 s": {every: time.Hour, calls: []call{{10, none, nil}, {20, none, nil}, {30.1, none, nil}}},
		"a period of 10 s from below": {every: time.Hour,
			calls: []call{{10, none, nil}, {20, none, nil}, {29.901, 0, other}}},
		"a period of 10 min": {every: time.Hour,
			calls: []call{{600, none, nil}, {1200, none, nil}, {1801.2, 0, other}}},
		"no period of 10 min": {every: time.Hour,
			calls: []call{{600, none, nil}, {1200, none, nil}, {1801.21, none, nil}}},
		"a period that ends": {every: time.Hour, calls: []call{{10, none, nil}, {20, none, nil}, {30, 0, other},
			{50, none, nil}, {70, 0, other}}},
	} {
		t.Run(what, func(t *testing.T) {
			begin := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
			at := func(seconds float64) time.Time {
				return begin.Add(time.Duration(seconds*1000+0.5) * time.Millisecond)
			}
			every, limit := time.Minute, 5*time.Second
			if c.every > 0 {
				every = c.every
			}
			if c.limit > 0 {
				limit = c.limit
			}
			now, berlin := begin.Add(1), time.FixedZone("", 7200)
			l := NewLocker(nil, tick.Every(every), Options{Late: c.late, Now: func() time.Time { return now.In(berlin) }})
			before := time.Time{}
			for i, c := range c.calls {
				if now = at(c.at); i%2 == 0 {
					_, _, _ = l.turn("another job")
				}
				got, late, err := l.turn("job")
				want, text := turn{}, "<nil>"
				switch {
				case c.err == same:
					nearest := now.Round(every)
					text = fmt.Sprintf("the tick %s: %v %v before", name(nearest), same, now.Sub(before))
				case c.err == other:
					text = fmt.Sprintf("it is run every %v here: %v, whose ticks are %v apart",
						now.Sub(before).Round(time.Millisecond), other, every)
				case c.tick == none:
					want = turn{now, "+" + name(now.Round(limit))}
				default:
					want = turn{at(c.tick), name(at(c.tick))}
				}
				if got != want || late != limit || !errors.Is(err, c.err) || fmt.Sprint(err) != text {
					t.Errorf("call %d at %v: %+v, %v, %v, want %+v, %v, %s", i, c.at, got, late, err, want, limit, text)
				}
				before = now
			}
		})
	}
}

// TestWhatATurnIsCalled compares the words for a turn.
func TestWhatATurnIsCalled(t *testing.T) {
	at := time.Date(2026, 5, 4, 10, 0, 0, 5, time.UTC)
	for want, of := range map[string]turn{
		"for the tick 2026-05-04T10:00:00.000000005Z":               tickOf(at.In(time.FixedZone("", 3600))),
		"outside of its schedule at 2026-05-04T10:00:00.000000005Z": {at, "+" + name(at.Round(time.Hour))},
	} {
		if got := of.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
