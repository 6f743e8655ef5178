package tick

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestEachFaultOfAJobIsNamed compares the whole text for each field alone, and for all at once.
func TestEachFaultOfAJobIsNamed(t *testing.T) {
	good := Job{Name: "n", Schedule: Every(time.Minute), Run: func(context.Context, Tick) error { return nil }}
	all := []struct {
		change func(j *Job)
		want   string
	}{
		{func(j *Job) { j.Name = "" }, "tick: Job.Name has 0 bytes: must be 1 to 400"},
		{func(j *Job) { j.Schedule = nil }, "tick: Job.Schedule is nil"},
		{func(j *Job) { j.Run = nil }, "tick: Job.Run is nil"},
		{func(j *Job) { j.Late = -1 }, "tick: Job.Late is -1ns: must not be negative"},
		{func(j *Job) { j.Skew = -2 }, "tick: Job.Skew is -2ns: must not be negative"},
	}
	if _, err := good.withDefaults(); err != nil {
		t.Error(err)
	}
	every, texts := good, []string(nil)
	for _, row := range all {
		j := good
		row.change(&j)
		row.change(&every)
		texts = append(texts, row.want)
		if _, err := j.withDefaults(); err == nil || err.Error() != row.want {
			t.Errorf("%v, want %q", err, row.want)
		}
	}
	if _, err := every.withDefaults(); err == nil || err.Error() != strings.Join(texts, "\n") {
		t.Errorf("all at once: %v", err)
	}
}

// TestWhatAJobMeansByDefault checks each field that has a default, and that the caller's own values
// stay.
func TestWhatAJobMeansByDefault(t *testing.T) {
	j := Job{Name: "n", Schedule: Every(time.Minute), Run: func(context.Context, Tick) error { return nil }}
	d, err := j.withDefaults()
	if err != nil || d.Late != 5*time.Second || d.Skew != 5*time.Second || time.Since(d.Now()).Abs() > time.Hour {
		t.Errorf("by default %+v, %v", d, err)
	}
	d.Report(Tick{}, nil)
	told := 0
	j.Late, j.Skew, j.Report = 1, 2, func(Tick, error) { told++ }
	j.Now = func() time.Time { return time.Unix(7, 0) }
	d, err = j.withDefaults()
	if d.Report(Tick{}, nil); err != nil || d.Late != 1 || d.Skew != 2 || told != 1 || !d.Now().Equal(time.Unix(7, 0)) {
		t.Errorf("%+v, %v, Report was called %d times", d, err, told)
	}
}

// TestAScheduleThatFailsOnce lets a schedule go back at each of its answers in turn, for several
// states of a plan. Each time the plan says so, and it takes no further tick from that schedule.
func TestAScheduleThatFailsOnce(t *testing.T) {
	now := at("10:00:00")
	for name, row := range map[string]struct {
		plan     plan
		schedule Schedule
		now      time.Time
	}{
		"anew":         {plan{late: time.Hour, skew: time.Second}, Every(time.Minute), now},
		"anew, early":  {plan{late: time.Second, skew: time.Second}, times{now.Add(time.Hour)}, now},
		"missed":       {plan{late: time.Second, skew: time.Second, settled: now.Add(-time.Hour)}, Every(time.Minute), now},
		"missed, many": {plan{late: time.Second, skew: time.Second, settled: now.AddDate(-1, 0, 0)}, Every(time.Minute), now},
		"the last":     {plan{late: time.Second, skew: time.Second, settled: now.Add(-1)}, times{now}, now},
	} {
		ask := func(fails int) (asked int, err error) {
			p := row.plan
			p.schedule = scheduleFunc(func(t time.Time) time.Time {
				if asked++; asked == fails {
					return t.Add(-time.Hour)
				}
				return row.schedule.Next(t)
			})
			_, err = p.next(row.now)
			return asked, err
		}
		all, err := ask(0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		step := max(1, all/100) // the first, the last, and a hundred between
		for fails := 1; fails <= all; fails++ {
			if fails > 100 && fails < all-100 && fails%step != 0 {
				continue
			}
			asked, err := ask(fails)
			if err == nil || !strings.Contains(err.Error(), "does not advance") &&
				!strings.Contains(err.Error(), "depends on when it is asked") {
				t.Errorf("%s: answer %d of %d goes back: %v", name, fails, all, err)
			}
			if asked != fails {
				t.Errorf("%s: after answer %d of %d goes back, %d more are asked", name, fails, all, asked-fails)
			}
		}
	}
}

// TestThePlanAfterEachStep compares the whole state of a plan.
func TestThePlanAfterEachStep(t *testing.T) {
	p := plan{schedule: Every(time.Minute), late: 20 * time.Second, skew: 5 * time.Second}
	for _, row := range []struct {
		now     string
		want    string // the tick, and those that were missed
		settled string
	}{
		{"10:00:30", "10:01:00 0", "10:00:10"},
		{"10:01:19.999", "10:01:00 0", "10:00:10"},
		{"10:01:20", "10:02:00 1", "10:01:00"},
		{"10:01:10", "10:02:00 1", "10:01:00"}, // the clock was set back, but not behind the last tick
		{"10:00:55", "10:02:00 1", "10:01:00"}, // by no more than Skew
		{"10:00:54.999", "10:01:00 0", "10:00:34.999"},
		{"10:05:00", "10:05:00 4", "10:04:00"},
	} {
		w, err := p.next(at(row.now))
		if got := fmt.Sprint(clock(w.at), " ", w.missed); err != nil || got != row.want || clock(p.settled) != row.settled {
			t.Errorf("at %s: %s, settled up to %s, %v; want %s and %s", row.now, got, clock(p.settled), err, row.want,
				row.settled)
		}
	}
}
