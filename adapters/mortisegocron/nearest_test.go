package mortisegocron

import (
	"strings"
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
		"at the tick":    {tick.Every(time.Minute), "2026-05-04T10:07:00Z", "2026-05-04T10:07:00Z", time.Minute},
		"a little late":  {tick.Every(time.Minute), "2026-05-04T10:07:29.9Z", "2026-05-04T10:07:00Z", time.Minute},
		"a little early": {tick.Every(time.Minute), "2026-05-04T10:06:59.999Z", "2026-05-04T10:07:00Z", time.Minute},
		"in the middle":  {tick.Every(time.Minute), "2026-05-04T10:07:30Z", "2026-05-04T10:07:00Z", time.Minute},
		"after the middle": {tick.Every(time.Minute), "2026-05-04T10:07:30.000000001Z", "2026-05-04T10:08:00Z",
			time.Minute},
		"the smallest gap": {tick.Every(minGap), "2026-05-04T10:07:00.014Z", "2026-05-04T10:07:00.01Z", minGap},
		"uneven nanoseconds": {list{at("2026-05-04T10:07:00.123456789Z"), at("2026-05-04T10:08:00.987654321Z")},
			"2026-05-04T10:07:01Z", "2026-05-04T10:07:00.123456789Z", time.Minute + 864197532},
		"long before the first": {once, "2006-01-01T00:00:00Z", "2026-01-01T00:00:00Z", 2 * lookBack},
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
	for want, schedule := range map[string]tick.Schedule{
		"the schedule of the Locker is nil":      nil,
		"the schedule of the Locker has no tick": list{},
		"the ticks 2026-05-04 10:07:00 +0000 UTC and 2026-05-04 10:07:00.009999999 +0000 UTC are 9.999999ms apart: " +
			"at least 10ms is needed": list{at("2026-05-04T10:07:00Z"), at("2026-05-04T10:07:00.009999999Z")},
		"the schedule of the Locker has no tick ": list{at("2006-05-04T10:07:00Z")}, // too long ago
	} {
		got, gap, err := nearest(schedule, at("2026-05-04T10:07:00Z"))
		if err == nil || err.Error() != strings.TrimSpace(want) || !got.IsZero() || gap != 0 {
			t.Errorf("%v, %v, %v, want %s", got, gap, err, want)
		}
		_, lockErr := NewLocker(nil, schedule, Options{Now: func() time.Time { return at("2026-05-04T10:07:00Z") }}).
			Lock(t.Context(), "job")
		if whole := `mortisegocron: job "job" does not run here: ` + err.Error(); lockErr == nil || lockErr.Error() != whole {
			t.Errorf("Lock: %v, want %s", lockErr, whole)
		}
	}
}
