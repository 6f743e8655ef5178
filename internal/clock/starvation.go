package clock

import (
	"fmt"
	"time"
)

// StarvedAfter is the shortest gap that [Starvation] counts. A busy machine often delays an owner
// by some milliseconds, which costs nothing.
const StarvedAfter = 250 * time.Millisecond

const starvationEvery = time.Minute

// Starvation counts the gaps in which the machine gave the process no processor. An owner goroutine
// that had nothing else to do, and still woke long after its timer was due, could not run: the
// machine is overloaded, or the process or the machine was paused. The zero value is ready to use.
// It is not safe for concurrent use.
type Starvation struct {
	Total time.Duration // the sum of the gaps
	Ended Time          // when the last gap ended; zero means that there was none

	said    Time
	times   int // gaps since the last report
	longest time.Duration
	sum     time.Duration
}

// Late notes that an owner woke at the time now, and was due earlier by the given time. It returns
// a report for the log at most once a minute, and otherwise "".
func (s *Starvation) Late(now Time, by time.Duration) string {
	if by < StarvedAfter {
		return ""
	}
	s.Total, s.Ended = s.Total+by, now
	s.times, s.sum, s.longest = s.times+1, s.sum+by, max(s.longest, by)
	if s.said != 0 && now.Sub(s.said) < starvationEvery {
		return ""
	}
	text := NoProcessor(s.longest)
	if s.times > 1 {
		text = fmt.Sprintf("%s, and for %v in %d gaps since the last such line", text, rounded(s.sum), s.times)
	}
	s.said, s.times, s.sum, s.longest = now, 0, 0, 0
	return text + ": run fewer programs on it or give this one more processor time, unless it was paused or suspended"
}

// NoProcessor returns the words for a gap.
func NoProcessor(gap time.Duration) string {
	return "this machine gave the process no processor for " + rounded(gap).String()
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
