package tick

import (
	"math"
	"strings"
	"testing"
	"time"
)

func at(clock string) time.Time {
	t, err := time.Parse("15:04:05.999", clock)
	if err != nil {
		panic(err)
	}
	return t.AddDate(2026, 0, 0)
}

func clock(t time.Time) string { return t.Format("15:04:05.999") }

type times []time.Time

func (s times) Next(t time.Time) time.Time {
	for _, at := range s {
		if at.After(t) {
			return at
		}
	}
	return time.Time{}
}

type scheduleFunc func(time.Time) time.Time

func (f scheduleFunc) Next(t time.Time) time.Time { return f(t) }

func TestEveryIsAlignedToTheEpoch(t *testing.T) {
	zone := time.FixedZone("UTC+5:30", 5*3600+1800)
	for _, c := range []struct {
		every      time.Duration
		from, want string
	}{
		{time.Hour, "2026-11-22T10:00:00Z", "2026-11-22T11:00:00Z"},
		{time.Hour, "2026-11-22T10:59:59.999999999Z", "2026-11-22T11:00:00Z"},
		{24 * time.Hour, "2026-11-22T10:00:00Z", "2026-11-23T00:00:00Z"},
		{7 * 24 * time.Hour, "2026-11-22T10:00:00Z", "2026-11-26T00:00:00Z"}, // a Thursday
		{7 * time.Second, "1970-01-01T00:00:00Z", "1970-01-01T00:00:07Z"},
		{7 * time.Second, "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"},
		{7 * time.Second, "1969-12-31T23:59:53Z", "1970-01-01T00:00:00Z"},
	} {
		from, err := time.Parse(time.RFC3339Nano, c.from)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []time.Time{from, from.In(zone)} {
			if got := Every(c.every).Next(from).Format(time.RFC3339Nano); got != c.want {
				t.Errorf("Every(%v).Next(%v) = %s, want %s", c.every, from, got, c.want)
			}
		}
	}
}

// However long Late is, and however long the plan was not asked, it asks the schedule at most for
// the 1,000 ticks that it counts, three times each, and searches the rest.
func TestPlanOfAnyLengthIsCheap(t *testing.T) {
	for _, late := range []time.Duration{time.Second, time.Hour, 365 * 24 * time.Hour, math.MaxInt64} {
		asked := 0
		schedule := scheduleFunc(func(t time.Time) time.Time {
			if asked++; asked > 4000 {
				panic("too many questions")
			}
			return Every(10 * time.Millisecond).Next(t)
		})
		p := plan{schedule: schedule, late: late, skew: math.MaxInt64}
		for _, now := range []time.Time{at("10:00:00.001"), at("10:00:00.002").AddDate(20, 0, 0)} {
			asked = 0
			w, err := p.next(now)
			if err != nil || w.at.Sub(now).Abs() > 10*time.Millisecond {
				t.Fatalf("Late %v: at %v the next tick is %v: %v", late, now, w.at, err)
			}
			t.Logf("Late %v: %d questions, %d missed", late, asked, w.missed)
		}
	}
}

func TestWindowsShrinkWhereTicksAreClose(t *testing.T) {
	for _, c := range []struct {
		schedule         Schedule
		late, skew       time.Duration
		now              string
		at, over, isFree string
	}{
		{Every(time.Minute), 5 * time.Second, 5 * time.Second, "10:00:00", "10:00:00", "10:00:05", "10:00:10"},
		{Every(time.Minute), 5 * time.Second, 5 * time.Second, "10:00:04.999", "10:00:00", "10:00:05", "10:00:10"},
		{Every(time.Minute), 5 * time.Second, 5 * time.Second, "10:00:05", "10:01:00", "10:01:05", "10:01:10"},
		{Every(time.Minute), time.Hour, 5 * time.Second, "10:00:54.999", "10:00:00", "10:00:55", "10:01:00"},
		{Every(8 * time.Second), 5 * time.Second, 5 * time.Second, "10:00:00", "10:00:00", "10:00:04", "10:00:08"},
		{Every(time.Second), 5 * time.Second, 5 * time.Second, "10:00:00.4", "10:00:00", "10:00:00.5", "10:00:01"},
		{times{at("10:00:00"), at("10:00:02"), at("11:00:00")}, 5 * time.Second, time.Second, "10:00:00.5",
			"10:00:00", "10:00:01", "10:00:02"},
		{times{at("10:00:00"), at("10:00:02"), at("11:00:00")}, 5 * time.Second, time.Second, "10:00:06.9",
			"10:00:02", "10:00:07", "10:00:08"},
		{times{at("10:00:00")}, 5 * time.Second, time.Second, "09:00:00", "10:00:00", "10:00:05", "10:00:06"},
		{Every(time.Minute), math.MaxInt64, 5 * time.Second, "10:00:54.999", "10:00:00", "10:00:55", "10:01:00"},
		{Every(time.Minute), math.MaxInt64, 5 * time.Second, "10:00:55", "10:01:00", "10:01:55", "10:02:00"},
		{Every(time.Minute), 5 * time.Second, math.MaxInt64, "10:00:04.999", "10:00:00", "10:00:05", "10:00:35"},
		{Every(time.Minute), math.MaxInt64, math.MaxInt64, "10:00:29.999", "10:00:00", "10:00:30", "10:01:00"},
	} {
		p := plan{schedule: c.schedule, late: c.late, skew: c.skew}
		w, err := p.next(at(c.now))
		if err != nil {
			t.Fatal(err)
		}
		if clock(w.at) != c.at || clock(w.over) != c.over || clock(w.free) != c.isFree || w.missed != 0 {
			t.Errorf("at %s: %s, over %s, free %s, %d missed; want %s, %s, %s and none", c.now, clock(w.at),
				clock(w.over), clock(w.free), w.missed, c.at, c.over, c.isFree)
		}
	}
}

func TestPlanCountsWhatPassed(t *testing.T) {
	p := plan{schedule: Every(time.Minute), late: 5 * time.Second, skew: 5 * time.Second}
	step := func(now, want string, missed int) {
		t.Helper()
		for range 2 { // a second call returns the same
			w, err := p.next(at(now))
			if err != nil {
				t.Fatal(err)
			}
			if clock(w.at) != want || w.missed != missed {
				t.Fatalf("at %s the next tick is %s with %d missed, want %s with %d", now, clock(w.at), w.missed,
					want, missed)
			}
		}
	}
	step("10:00:30", "10:01:00", 0)
	p.attended(at("10:01:00"))
	step("10:01:01", "10:02:00", 0)
	step("10:04:30", "10:05:00", 3) // the ticks of minutes two, three and four were missed
	p.attended(at("10:05:00"))
	step("10:05:00", "10:06:00", 0) // the same tick does not run twice
	p.pass(at("10:06:00"))
	step("10:06:20", "10:07:00", 1)
	p.attended(at("10:07:00"))
	step("10:06:58", "10:08:00", 0) // the clock was set back by less than skew
	step("09:30:30", "09:31:00", 0) // it was set back by more than skew, so the plan starts anew
	p.attended(at("09:31:00"))
	p.attended(at("09:32:00"))
	step("23:59:30", "00:00:00", 867)
	p.settled = p.settled.AddDate(-20, 0, 0)
	step("23:59:30", "00:00:00", maxMissed)
}

// The last tick of a schedule has no following tick, which would limit its Late and Skew.
func TestTheLastTickHasNoEnd(t *testing.T) {
	p := plan{schedule: times{at("10:00:00")}, late: math.MaxInt64, skew: math.MaxInt64}
	for _, now := range []time.Time{at("10:00:00"), at("10:00:00").AddDate(200, 0, 0)} {
		w, err := p.next(now)
		if err != nil || clock(w.at) != "10:00:00" || !w.over.After(now) || w.free.Before(w.over) {
			t.Errorf("at %v: %+v, %v", now, w, err)
		}
	}
}

func TestEveryEndsWithItsYears(t *testing.T) {
	for _, e := range []Every{math.MaxInt64, math.MaxInt64 - 1, Every(200 * 365 * 24 * time.Hour), Every(time.Hour)} {
		now, ticks := at("10:00:00").AddDate(230, 0, 0), 0
		for ; !now.IsZero() && ticks < 1_000_000; ticks++ {
			next := e.Next(now)
			if !next.IsZero() && !next.After(now) {
				t.Fatalf("Every(%v): after %v comes %v", time.Duration(e), now, next)
			}
			now = next
		}
		if !now.IsZero() {
			t.Errorf("Every(%v) has no end", time.Duration(e))
		}
	}
}

func TestPlanEndsWithTheSchedule(t *testing.T) {
	p := plan{schedule: times{at("10:00:00"), at("10:01:00")}, late: 5 * time.Second, skew: time.Second}
	if w, err := p.next(at("10:01:04")); err != nil || clock(w.at) != "10:01:00" {
		t.Fatalf("got %v, %v", w, err)
	}
	if w, err := p.next(at("10:01:05")); err != errNoMore {
		t.Fatalf("after the last tick there is %v, %v", w, err)
	}
}

func TestPlanRefusesSchedulesThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		schedule Schedule
		want     string
	}{
		"stands": {Every(0), "does not advance"},
		"goes back": {scheduleFunc(func(t time.Time) time.Time { return t.Add(-time.Hour) }),
			"does not advance"},
		"from now": {scheduleFunc(func(t time.Time) time.Time { return t.Add(time.Hour) }),
			"depends on when it is asked"},
		"much too fine": {Every(time.Millisecond), "apart"},
	} {
		p := plan{schedule: c.schedule, late: time.Second, skew: time.Second}
		if w, err := p.next(at("10:00:00")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v", name, w, err)
		}
	}
}
