package console

import (
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"
)

// The doc comment of History states the size.
func TestTheHourIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(History{}); size < 110_000 || size > 120_000 {
		t.Errorf("a History has %d bytes; its comment says about 115 KB", size)
	}
}

type noted struct {
	at    time.Time
	kind  int // 0 a grant, 1 a wait, 2 a loss, 3 a lease
	lease time.Duration
}

// oldSlot returns the number of the slot of a time, by a plain division.
func oldSlot(began, at time.Time) int { return int(at.Sub(began) / slotTime) }

// The ring must have exactly what a list of all events has for the same slots, whatever the pauses
// between the events are.
func TestTheHourIsAListOfEvents(t *testing.T) {
	began := time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		var h hour
		h.begin(began)
		var list []noted
		now := began
		for range r.IntN(400) {
			pause := []time.Duration{0, time.Second, 20 * time.Second, slotTime, 10 * time.Minute, 3 * time.Hour}
			now = now.Add(time.Duration(r.Int64N(int64(pause[r.IntN(4+r.IntN(3))]) + 1)))
			e := noted{now, r.IntN(4), time.Duration(r.Int64N(int64(40 * time.Second)))}
			list = append(list, e)
			switch e.kind {
			case 0:
				h.at(now).grants++
			case 1:
				h.at(now).waits++
			case 2:
				h.at(now).losses++
			case 3:
				h.leased(now, e.lease)
			}
		}
		now = now.Add(time.Duration(r.Int64N(int64(2 * slotTime))))
		last := oldSlot(began, now)
		number := max(last-slotsKept, 0)
		h.slots(now, func(s *slot, ago, lasted time.Duration) {
			var want [3]uint32
			for _, e := range list {
				if e.kind < 3 && oldSlot(began, e.at) == number {
					want[e.kind]++
				}
			}
			begin := began.Add(time.Duration(number) * slotTime)
			if got := [3]uint32{s.grants, s.waits, s.losses}; got != want || ago != now.Sub(begin) ||
				lasted != min(ago, slotTime) {
				t.Fatalf("seed %d, slot %d of %d: %v, want %v; it began %v ago and lasted %v",
					seed, number, last, got, want, ago, lasted)
			}
			if lease := leaseOf(list, begin, now); s.lease != lease {
				t.Fatalf("seed %d, slot %d of %d: the lowest lease is %v, want %v", seed, number, last, s.lease, lease)
			}
			number++
		})
		if number != last+1 {
			t.Fatalf("seed %d: the last slot is %d, want %d", seed, number-1, last)
		}
	}
}

// leaseOf returns the lowest lease of the slot that begins at begin, from the list of events: a
// lease is lowest directly before it is renewed, at the end of the slot, and when it is set.
func leaseOf(list []noted, begin, now time.Time) time.Duration {
	end := begin.Add(slotTime)
	if now.Before(end) {
		end = now
	}
	lowest, lapses := unknown, time.Time{}
	note := func(at time.Time) {
		if left := max(lapses.Sub(at), 0); !lapses.IsZero() && (lowest == unknown || left < lowest) {
			lowest = left
		}
	}
	for _, e := range list {
		if e.kind != 3 || e.at.After(end) || e.at.Equal(end) && end.Before(now) {
			continue
		}
		if inside := !e.at.Before(begin); inside {
			note(e.at)
		}
		lapses = e.at.Add(e.lease)
		if inside := !e.at.Before(begin); inside {
			note(e.at)
		}
	}
	note(end)
	return lowest
}

// A clock that goes back must not lose events or reach outside the ring.
func TestTheHourWithAClockThatGoesBack(t *testing.T) {
	var h hour
	began := time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)
	h.begin(began)
	h.at(began.Add(2*time.Hour)).grants++
	h.at(began.Add(-time.Hour)).grants++
	if p := pastOf(&h, began.Add(2*time.Hour)); p.Grants.Total != 2 {
		t.Errorf("%d grants are left of 2", p.Grants.Total)
	}
}
