package console

import "time"

// This file is the memory of one hour: counts in slots of fixed length, in a ring. It has no clock
// and no lock.

const (
	slotTime  = 30 * time.Second
	slotsKept = int(time.Hour / slotTime)
)

// slot contains what happened in one slotTime.
type slot struct {
	grants, waits, losses uint32
	wait, hold            histogram
	lease                 time.Duration // the lowest lease that remained; unknown if it was not known
}

const unknown = time.Duration(-1)

// hour contains the last hour and the slot that has not ended. Its methods must be called with
// times that do not decrease. An earlier time counts for the newest slot.
type hour struct {
	began time.Time
	ring  [slotsKept + 1]slot
	head  int // number of the newest slot, counted from 0 at began

	lapses time.Time // when the lease ends if it is not renewed; zero means unknown
}

func (h *hour) begin(now time.Time) {
	h.began = now
	for i := range h.ring {
		h.ring[i].lease = unknown
	}
}

// at returns the slot of the present time, and empties the slots that were passed.
func (h *hour) at(now time.Time) *slot {
	newest := int(now.Sub(h.began) / slotTime)
	if newest > h.head+len(h.ring) { // nothing of the ring is left
		h.noteLease(h.end(h.head))
		h.head = newest - len(h.ring)
	}
	for h.head < newest {
		h.noteLease(h.end(h.head))
		h.head++
		*h.newest() = slot{lease: unknown}
	}
	return h.newest()
}

func (h *hour) newest() *slot { return &h.ring[h.head%len(h.ring)] }

func (h *hour) end(number int) time.Time { return h.began.Add(time.Duration(number+1) * slotTime) }

// noteLease lowers the lease of the newest slot to what remains at a time in this slot.
func (h *hour) noteLease(at time.Time) {
	if h.lapses.IsZero() {
		return
	}
	if left, s := max(h.lapses.Sub(at), 0), h.newest(); s.lease == unknown || left < s.lease {
		s.lease = left
	}
}

// leased notes that the lease now remains for left. The lease is lowest directly before that.
func (h *hour) leased(now time.Time, left time.Duration) {
	h.at(now)
	h.noteLease(now)
	h.lapses = now.Add(left)
	h.noteLease(now)
}

// slots calls f with each slot that is remembered, the oldest first. It reports how long ago the
// slot began, and how long it has lasted.
func (h *hour) slots(now time.Time, f func(s *slot, ago, lasted time.Duration)) {
	h.at(now)
	h.noteLease(now)
	for number := max(h.head-slotsKept, 0); number <= h.head; number++ {
		begin := h.end(number - 1)
		f(&h.ring[number%len(h.ring)], now.Sub(begin), min(now.Sub(begin), slotTime))
	}
}
