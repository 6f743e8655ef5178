package whole

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// plan is what a seed decides before a run.
type plan struct {
	seed   uint64
	nodes  int  // instances at the end
	grows  bool // the run begins with one founder, and the others join and become founders, too
	dirs   bool // each instance has a directory
	power  bool // a kill also loses what was not synced
	hooks  bool
	secret bool
	guests int

	ttl     time.Duration
	latency time.Duration
	loss    float64
	pause   time.Duration // before lost bytes are sent again
	storm   time.Duration // how long faults happen
	trials  int           // how often calls have bounds, after the storm

	// The chances of yields at mutexes, channels and atomics, and those of refusals, one in so many.
	// Zero means never. They count in the changed runtime only.
	yields   [3]uint32
	refusals [8]uint32
}

// The places that refuse work at times, in the order of native/product.diff.
const (
	refusedFrame    = iota // a link does not queue a frame of a client
	refusedRaft            // a link drops a message of raft
	refusedProposal        // a log does not queue a batch
	refusedStep            // a log drops a message of raft
	refusedInput           // a client drops replies
	refusedCommands        // a keeper drops a frame of a client
	refusedReplies         // a link does not queue a frame of a keeper
	refusedMessages        // a link does not queue a frame with messages of raft
)

func planOf(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	oneOf := func(rates ...uint32) uint32 { return rates[r.IntN(len(rates))] }
	p := plan{seed: seed, nodes: 3, ttl: time.Second + time.Duration(r.IntN(2000))*time.Millisecond,
		guests: r.IntN(3), storm: 6 * time.Second, trials: 20,
		yields: [3]uint32{oneOf(0, 4, 8, 32), oneOf(0, 4, 16, 64), oneOf(0, 8, 32)}}
	switch r.IntN(4) {
	case 0: // frequent ones of one kind
		p.refusals[r.IntN(len(p.refusals))] = oneOf(60, 120)
	case 1:
		for kind := range p.refusals {
			p.refusals[kind] = oneOf(0, 100, 300)
		}
	}
	switch r.IntN(6) {
	case 0:
		p.nodes = 1
	case 1:
		p.nodes, p.grows = 5, true
	case 2:
		p.nodes, p.grows = 3, true
	case 3:
		p.nodes = 5
	}
	p.dirs, p.power = r.IntN(3) == 0 || p.grows, r.IntN(2) == 0 // a founder that restarts keeps its vote in a Dir
	p.hooks, p.secret = r.IntN(3) == 0, r.IntN(8) == 0
	if r.IntN(4) != 0 {
		part := r.Float64()
		p.latency = time.Duration(part * part * float64(4*time.Millisecond))
		p.loss = r.Float64() * 0.2
		p.pause = time.Duration(1 + r.Int64N(int64(60*time.Millisecond)))
	}
	if r.IntN(4) == 0 {
		p.storm = 0
	}
	return p
}

func (p plan) String() string {
	type fields plan // without this method
	return fmt.Sprintf("%+v", fields(p))
}
