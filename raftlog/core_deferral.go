package raftlog

// deferrals number the times for which the leader defers batches, see Core.defers. Zero is none.
type deferrals struct {
	last  uint64
	timed uint64 // the one that EndDeferral will end
}

func (d *deferrals) next() uint64 {
	d.last++
	return d.last
}

// begins reports whether a timer must begin for the present deferral.
func (d *deferrals) begins(present uint64) bool {
	if d.timed != 0 {
		return false
	}
	d.timed = present
	return present != 0
}

// end is called by that timer. It reports whether the timer was for the present deferral.
func (d *deferrals) end(present uint64) bool {
	ends := d.timed != 0 && d.timed == present
	d.timed = 0
	return ends
}
