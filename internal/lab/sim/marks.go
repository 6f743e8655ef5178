package sim

import (
	"time"

	"github.com/mortise-lock/mortise/internal/lab/timeline"
)

// marks collects what the page of a failed run shows. All times are those of the page, which begin
// with the run.
type marks struct {
	timeline.Recorder
	ended map[int]time.Duration // when each process ended, by its stream in the history
}

// networkLane is the lane of faults that are not of one machine.
const networkLane = "network"

func (k *marks) process(stream int, at time.Duration) {
	if k.ended == nil {
		k.ended = map[int]time.Duration{}
	}
	k.ended[stream] = at
}
