package raftlog

import "time"

// detector decides how long a leader may be silent before this voter starts an election, by the
// rule in the package comment. It is a pure core: its inputs are method calls, and its time is the
// number of ticks that this process has taken. A late tick counts once.
type detector struct {
	lowest, highest uint64 // the bounds, in ticks
	beat, regular   uint64 // the time between two heartbeats, and the longest gap that is not too long
	window          uint64 // for this many ticks to twice as many, a gap counts

	now uint64

	leader uint64 // the leader whose silence is measured; zero means none
	last   uint64 // time of its last message

	suspect     uint64 // the leader that was given up last, until it sends again; zero means none
	suspectLast uint64 // time of its last message before that

	longest [2]uint64 // the longest gap in the present window, and in the one before
	ends    uint64    // time at which the present window ends

	holds         uint64 // time until which the upper bound holds
	hold, maxHold uint64 // the length of the last hold, and of the longest one, in ticks
}

const (
	gapWindow   = time.Minute
	gapFactor   = 4
	holdWindows = 60 // the first hold, in windows
	longestHold = 24 // the longest hold, in first holds
)

// newDetector returns a detector with the two bounds, the time between two heartbeats, and the
// shortest time for which a gap counts, all in ticks.
func newDetector(lowest, highest, beat, window int) detector {
	d := detector{lowest: uint64(lowest), highest: uint64(highest), window: uint64(window)}
	d.hold, d.maxHold = d.window*holdWindows/2, d.window*holdWindows*longestHold
	// The phases of the two clocks can add a tick, and a busy processor another one.
	d.beat, d.regular = uint64(beat), uint64(beat)+2
	d.longest, d.ends = [2]uint64{d.highest, d.highest}, d.window
	return d
}

// limit returns the ticks for which the leader may be silent.
func (d *detector) limit() uint64 {
	if d.now < d.holds {
		return d.highest
	}
	gap := max(d.longest[0], d.longest[1])
	return min(d.highest, d.lowest+gapFactor*(max(gap, d.regular)-d.regular))
}

// tick counts a tick of this process. The time of the clock has advanced by n ticks.
func (d *detector) tick(n uint64) {
	d.now++
	if d.now >= d.ends {
		d.longest, d.ends = [2]uint64{0, d.longest[0]}, d.now+d.window
	}
	if n > 1 {
		d.note(d.beat + n)
	}
}

// follows notes the present leader. Zero means that there is none, or that this replica leads.
func (d *detector) follows(leader uint64) {
	if leader != d.leader {
		d.leader, d.last = leader, d.now
	}
}

// heard notes a message of another replica. The message may be of an earlier term.
func (d *detector) heard(from uint64) {
	if from == d.suspect {
		d.note(d.now - d.suspectLast)
		d.suspect = 0
	}
	if from == d.leader {
		d.note(d.now - d.last)
		d.last = d.now
	}
}

func (d *detector) note(gap uint64) {
	if gap <= d.regular || gap > 2*d.highest {
		return
	}
	d.longest[0] = max(d.longest[0], gap)
	if gap < d.lowest {
		return
	}
	if d.now >= d.holds {
		d.hold = min(2*d.hold, d.maxHold)
	}
	d.holds = d.now + d.hold
}

// givesUp reports whether the leader has now been silent for too long. It reports true once for
// each silence.
func (d *detector) givesUp() bool {
	limit := d.limit()
	if d.leader == 0 || limit >= d.highest || d.now-d.last < limit {
		return false
	}
	d.suspect, d.suspectLast, d.leader = d.leader, d.last, 0
	return true
}
