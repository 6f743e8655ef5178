package clock

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A gap is told with its true length, at most once a minute, and none is left out of the next line.
func TestStarvation(t *testing.T) {
	var s Starvation
	const end = ": run fewer programs on it or give this one more processor time, unless it was paused or suspended"
	now := Time(1)
	for i, step := range []struct {
		after, by time.Duration
		want      string
	}{
		{0, 249 * time.Millisecond, ""},
		{time.Second, 1234 * time.Millisecond, "this machine gave the process no processor for 1.2s" + end},
		{time.Second, 5 * time.Second, ""},
		{57 * time.Second, 300 * time.Millisecond, ""},
		{2 * time.Second, 100 * time.Millisecond, ""}, // no gap, so no line
		{time.Second, 700 * time.Millisecond, "this machine gave the process no processor for 5s, and for 6s in 3 gaps " +
			"since the last such line" + end},
		{time.Hour, 300 * time.Millisecond, "this machine gave the process no processor for 300ms" + end},
	} {
		now = now.Add(step.after)
		if got := s.Late(now, step.by); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	if s.Total != 7534*time.Millisecond || s.Ended != now {
		t.Errorf("%v in all, the last ended at %v, want 7.534s and %v", s.Total, s.Ended, now)
	}
}

// At most one line a minute is written, for every distance of the gaps, and the sum is complete.
func TestStarvationIsToldSeldom(t *testing.T) {
	for _, every := range []time.Duration{time.Second, 7 * time.Second, 50 * time.Second, 3 * time.Minute} {
		var s Starvation
		lines, now := 0, Time(1)
		for ; now.Sub(1) < time.Hour; now = now.Add(every) {
			if s.Late(now, time.Second) != "" {
				lines++
			}
		}
		if most := int(min(time.Hour/every, 60)) + 1; lines > most || lines < most/2 {
			t.Errorf("a gap every %v: %d lines in an hour", every, lines)
		}
		if gaps := s.Total / time.Second; gaps < time.Hour/every {
			t.Errorf("a gap every %v: %v in all", every, s.Total)
		}
	}
	if text := fmt.Sprint(NoProcessor(11240 * time.Millisecond)); !strings.HasSuffix(text, " for 11.2s") {
		t.Error(text)
	}
}
