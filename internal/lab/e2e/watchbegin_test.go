package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestWatchBeginsAnewWhereItsBeginningBrokeOff breaks a watch off after each of its first events in
// turn. The resumed watch must still reach the current state.
func TestWatchBeginsAnewWhereItsBeginningBrokeOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		for i := range 5 {
			f.lock(0, fmt.Sprint("k", i))
		}
		for breaks := 1; breaks <= 7; breaks++ {
			w, after, n := newWatcher(t), uint64(0), 0
			for e, err := range f.nodes[1].Watch(brief(t), "k", after) {
				if err != nil {
					t.Fatal(err)
				}
				w.see(e)
				after = e.Position
				if n == 1 { // the watch has not read this key before, and must report it once
					unlock(t, f.lock(2, "k-brief"))
				}
				if n++; n == breaks {
					break
				}
			}
			for e, err := range f.nodes[1].Watch(brief(t), "k", after) {
				if err != nil {
					t.Fatal(err)
				}
				if w.see(e); e.Kind == mortise.EventCurrent {
					break
				}
			}
			if len(w.held) != 5 {
				t.Errorf("broken off behind %d events: %v", breaks, w.held)
			}
		}
	})
}

// TestWatchTellsOfAllReaders checks a key whose readers do not fit into one answer.
func TestWatchTellsOfAllReaders(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		const readers = 2500
		f := startFleet(t, 3)
		var all sync.WaitGroup
		locks := make([]*mortise.Lock, readers)
		for i := range readers {
			all.Go(func() {
				l, err := f.nodes[i%3].Acquire(t.Context(), mortise.Request{Key: "shared", Mode: mortise.Shared,
					Value: fmt.Sprint(i)})
				if err != nil {
					t.Error(err)
				}
				locks[i] = l
			})
		}
		all.Wait()
		writer := f.later(0, mortise.Request{Key: "shared"})
		w, values := newWatcher(t), map[string]bool{}
		for e, err := range f.nodes[f.follower()].Watch(t.Context(), "shared", 0) {
			if err != nil {
				t.Fatal(err)
			}
			w.see(e)
			if e.Kind == mortise.EventHeld {
				values[e.Value] = true
				// Half of the readers unlock. Some of these readers were reported before, and some
				// were not.
				if len(w.held) == 500 {
					for i := 0; i < readers; i += 2 {
						unlock(t, locks[i])
					}
				}
			}
			if e.Kind == mortise.EventCurrent {
				break
			}
		}
		if len(w.held) != readers/2 || len(values) < readers/2 {
			t.Errorf("%d are told with %d values, %d hold it", len(w.held), len(values), readers/2)
		}
		for i := 1; i < readers; i += 2 {
			unlock(t, locks[i])
		}
		unlock(t, comes(t, "the writer", writer))
	})
}

// TestWatchTellsWhatAHoldShows checks the value and labels of holds, and the revision that is
// needed to replace data.
func TestWatchTellsWhatAHoldShows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		show := func(key, value string) mortise.Request {
			return mortise.Request{Key: key, Value: value, Labels: map[string]string{"order": value},
				LockDelay: time.Hour}
		}
		before := f.acquire(0, show("k/before", "one"))
		revision, err := f.nodes[0].Put(t.Context(), "k/data", []byte("x"), 0)
		if err != nil {
			t.Fatal(err)
		}
		var after *mortise.Lock
		began, data, currents := map[string]mortise.Event{}, []uint64(nil), 0
		lefts := 0
		for e, err := range f.nodes[f.follower()].Watch(brief(t), "k/", 0) {
			if err != nil {
				t.Fatal(err)
			}
			switch e.Kind {
			case mortise.EventHeld:
				began[e.Key] = e
				if e.Key == "k/before" && after == nil { // before the whole present state is reported
					after = f.acquire(1, show("k/after", "two"))
					if err := before.Detach(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			case mortise.EventLeft:
				lefts++
			case mortise.EventData:
				data = append(data, e.Revision)
			}
			if e.Kind != mortise.EventCurrent {
				continue
			}
			if currents++; currents == 2 {
				break
			}
			if _, err := f.nodes[0].Put(t.Context(), "k/data", nil, revision); err != nil {
				t.Fatal(err)
			}
		}
		for key, value := range map[string]string{"k/before": "one", "k/after": "two"} {
			if e := began[key]; e.Value != value || e.Labels["order"] != value || e.At.IsZero() {
				t.Errorf("%s: %+v", key, e)
			}
		}
		if fmt.Sprint(data) != fmt.Sprint([]uint64{revision, 0}) || lefts != 1 {
			t.Errorf("data at revisions %v, want %d and 0; %d have left, want 1", data, revision, lefts)
		}
		if put, err := f.nodes[0].Put(t.Context(), "k/data", []byte("y"), data[len(data)-1]); put == 0 || err != nil {
			t.Errorf("over what was told: %v", err)
		}
	})
}

// TestAHoldThatIsLeftWhileItIsReadIsToldOnce detaches a hold while the watch reads the present
// state.
func TestAHoldThatIsLeftWhileItIsReadIsToldOnce(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		stays := []*mortise.Lock{f.acquire(0, mortise.Request{Key: "k/1", LockDelay: time.Hour}), nil}
		for i := range 300 {
			f.lock(0, fmt.Sprint("k/many/", i))
		}
		stays[1] = f.acquire(0, mortise.Request{Key: "k/2", LockDelay: time.Hour})
		told := map[string]int{}
		n := 0
		for e, err := range f.nodes[1].Watch(brief(t), "k/", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 5 { // k/1 was read, k/2 was not
				for _, l := range stays {
					if err := l.Detach(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			if e.Kind == mortise.EventLeft {
				told[e.Key]++
			}
			if e.Kind == mortise.EventCurrent {
				break
			}
		}
		if told["k/1"] != 1 || told["k/2"] != 1 {
			t.Errorf("told: %v", told)
		}
	})
}

// TestWatchBeginsWhereMuchHappens makes more events than the leader keeps, while a watch reads the
// present state.
func TestWatchBeginsWhereMuchHappens(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		for i := range 500 {
			f.lock(0, fmt.Sprintf("k/%03d", i))
		}
		busy := func(n int) {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					if l, err := f.nodes[i%3].Lock(t.Context(), fmt.Sprint("k/busy/", i)); err != nil ||
						l.Unlock(t.Context()) != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		w, told := newWatcher(t), 0
		for e, err := range f.nodes[1].Watch(t.Context(), "k/", 0) {
			if err != nil {
				t.Fatal(err)
			}
			w.see(e)
			if e.Kind == mortise.EventHeld && !strings.HasPrefix(e.Key, "k/busy/") {
				if told++; told%100 == 50 {
					busy(1000) // 2,000 events at a time, 10,000 in all
				}
			}
			if e.Kind == mortise.EventCurrent || w.resets > 1 {
				break
			}
		}
		if w.resets != 1 || len(w.held) != 500 {
			t.Errorf("%d resets, %d are held", w.resets, len(w.held))
		}
	})
}
