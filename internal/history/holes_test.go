package history_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/lab/historytest"
)

func without(events []history.Event, which func(e history.Event) bool) (left []history.Event) {
	for _, e := range events {
		if !which(e) {
			left = append(left, e)
		}
	}
	return left
}

// TestOneVoterIsEnough checks that the account of one voter is sufficient if it covers the log
// from the beginning.
func TestOneVoterIsEnough(t *testing.T) {
	events := historytest.Make(all(4, 400))
	for _, silent := range [][2]string{{"voter-0", "voter-2"}, {"voter-1", "voter-2"}, {"voter-0", "voter-1"}} {
		left := without(events, func(e history.Event) bool { return e.Node == silent[0] || e.Node == silent[1] })
		err := history.Judge(left, history.Options{Settled: true})
		if alone := silent == [2]string{"voter-0", "voter-1"}; alone != (err != nil) {
			t.Errorf("without %v: %v", silent, err)
		}
	}
}

func TestHolesAreUnknown(t *testing.T) {
	events := historytest.Make(all(4, 400))
	mid := events[len(events)/2].At
	for _, c := range []struct {
		name  string
		which func(e history.Event) bool
	}{
		{"no voters", func(e history.Event) bool { return e.Group != 0 }},
		{"no beginnings", func(e history.Event) bool { return e.Kind == history.Begin }},
		{"no calls", func(e history.Event) bool { return e.Kind == history.Call }},
		{"the voters stop early", func(e history.Event) bool { return e.Group != 0 && e.At > mid }},
		{"a gap before the snapshot", func(e history.Event) bool {
			return e.Node == "voter-0" || e.Node == "voter-1" && (e.Kind == history.Mark || e.At > 1040_000_000)
		}},
	} {
		err := history.Judge(without(events, c.which), history.Options{})
		if !errors.Is(err, history.ErrUnknown) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestClocksApart checks that a wrong clock causes a violation unless Uncertainty is large enough.
func TestClocksApart(t *testing.T) {
	events := historytest.Make(all(5, 400))
	for i := range events {
		if events[i].Node == "node-1" {
			events[i].At += int64(5 * time.Millisecond)
			if events[i].Until != 0 {
				events[i].Until += int64(5 * time.Millisecond)
			}
		}
	}
	var v *history.Violation
	if err := history.Judge(events, history.Options{}); !errors.As(err, &v) {
		t.Errorf("on one clock: %v", err)
	}
	if err := history.Judge(events, history.Options{Uncertainty: 5 * time.Millisecond}); err != nil {
		t.Errorf("with the true uncertainty: %v", err)
	}
}

// TestTwoGroups checks that a second group may follow only if no caller believes that it holds a
// lock of the first group.
func TestTwoGroups(t *testing.T) {
	first := historytest.Make(historytest.Options{Seed: 7, Calls: 300, Callers: 5, Keys: 3, Crash: 0.1})
	second := historytest.Make(historytest.Options{Seed: 8, Calls: 300, Callers: 5, Keys: 3})
	if err := history.Judge(historytest.Follow(first, second, 1), history.Options{Settled: true}); err != nil {
		t.Errorf("one after the other: %v", err)
	}
	var v *history.Violation
	if err := history.Judge(historytest.Follow(first, second, -int64(400*time.Millisecond)),
		history.Options{Settled: true}); !errors.As(err, &v) {
		t.Errorf("two groups at once: %v", err)
	}
}

// TestCutRecordingPasses checks that Judge reports no violation if the recording stops at an
// arbitrary time, which is the same in all streams.
func TestCutRecordingPasses(t *testing.T) {
	events := historytest.Make(all(6, 300))
	last := events[len(events)-1].At
	for at := events[0].At; at < last; at += 3_000_000 {
		left := without(events, func(e history.Event) bool { return e.At > at })
		var v *history.Violation
		if err := history.Judge(left, history.Options{}); errors.As(err, &v) {
			t.Fatalf("cut at %d: %v", at, err)
		}
	}
}
