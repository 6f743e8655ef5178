package mortisegocron

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/mortise-lock/mortise/tick"
)

type list []time.Time

func (l list) Next(t time.Time) time.Time {
	for _, at := range l {
		if at.After(t) {
			return at
		}
	}
	return time.Time{}
}

func TestNearestTick(t *testing.T) {
	at := func(text string) time.Time {
		t.Helper()
		parsed, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	workdays, err := cron.ParseStandard("30 9 * * 1-5")
	if err != nil {
		t.Fatal(err)
	}
	leap, err := cron.ParseStandard("0 0 29 2 *")
	if err != nil {
		t.Fatal(err)
	}
	once := list{at("2026-01-01T00:00:00Z")}
	for what, c := range map[string]struct {
		schedule  tick.Schedule
		now, want string
		gap       time.Duration
	}{
		"at the tick":           {tick.Every(time.Minute), "2026-05-04T10:07:00Z", "2026-05-04T10:07:00Z", time.Minute},
		"a little late":         {tick.Every(time.Minute), "2026-05-04T10:07:29.9Z", "2026-05-04T10:07:00Z", time.Minute},
		"a little early":        {tick.Every(time.Minute), "2026-05-04T10:06:59.999Z", "2026-05-04T10:07:00Z", time.Minute},
		"after a weekend":       {workdays, "2026-05-04T09:30:01Z", "2026-05-04T09:30:00Z", 24 * time.Hour},
		"early after a weekend": {workdays, "2026-05-04T09:29:59Z", "2026-05-04T09:30:00Z", 72 * time.Hour},
		"every four years":      {leap, "2026-05-04T09:29:59Z", "2028-02-29T00:00:00Z", 4*365*24*time.Hour + 24*time.Hour},
		"before the first":      {once, "2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", 2 * time.Second},
		"after the last":        {once, "2026-01-01T00:00:03Z", "2026-01-01T00:00:00Z", 6 * time.Second},
	} {
		got, gap, err := nearest(c.schedule, at(c.now))
		if err != nil || !got.Equal(at(c.want)) || gap != c.gap {
			t.Errorf("%s: %v, %v, %v, want %s and %v", what, got, gap, err, c.want, c.gap)
		}
	}
	for what, schedule := range map[string]tick.Schedule{
		"nil": nil, "no tick": list{}, "too close": tick.Every(time.Millisecond),
	} {
		if got, _, err := nearest(schedule, at("2026-05-04T10:07:00Z")); err == nil {
			t.Errorf("%s: %v and no error", what, got)
		}
	}
}
