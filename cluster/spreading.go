package cluster

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	pullWithin       = 2 * time.Second // how long to wait for an answer of the leader
	pullSoon         = pullWithin / 8  // how long to wait for an answer of another voter
	pushTries        = 4
	pushPause        = time.Second
	removedPeerPause = time.Second // pause between two pushes to one removed peer
	maxRemovedPeers  = 64
	maxAsks          = 8         // questions under way at the same time
	idle             = time.Hour // time until the next turn if no work is due
)

// charterAt is the number of a group's first configuration, which its charter defines.
const charterAt = 1

type spreading struct {
	pushes   []*pushing       // waiting to be sent
	attached []founding.Voter // instances that still need the configuration, each once
	telling  int
	before   []founding.Voter // replicas of replaced configurations, kept until the next evaluation
	pullAt   time.Duration    // time of the next question for a newer configuration
	pulls    int
}

// pushing sends the newest configuration to one instance. The push is repeated while the instance
// is silent and tries are left.
type pushing struct {
	to    nodeid.ID
	addr  string
	tries int
	due   time.Duration // zero means now
}

// RemovedPeers contains the removed instances that were recently sent the configuration. The zero
// value is empty. A RemovedPeers is not safe for concurrent use.
type RemovedPeers struct{ told map[nodeid.ID]time.Duration }

// Due reports whether the configuration must be sent to a removed peer now, and records a positive
// answer. It returns true at most once a second for each peer, and at most maxRemovedPeers times a
// second in total.
func (s *RemovedPeers) Due(instance nodeid.ID, now time.Duration) bool {
	if last, known := s.told[instance]; known && now-last < removedPeerPause {
		return false
	}
	if s.told == nil {
		s.told = make(map[nodeid.ID]time.Duration)
	}
	for id, last := range s.told {
		if now-last >= removedPeerPause {
			delete(s.told, id)
		}
	}
	if len(s.told) >= maxRemovedPeers {
		return false
	}
	s.told[instance] = now
	return true
}

// remember keeps the replicas of a replaced configuration until an evaluation shows whether this
// instance leads.
func (s *spreading) remember(before []founding.Voter) {
	for _, v := range before {
		if !slices.ContainsFunc(s.before, func(o founding.Voter) bool { return o.Raft == v.Raft }) {
			s.before = append(s.before, v)
		}
	}
}

// forget returns the replicas of the replaced configurations, for the last time.
func (s *spreading) forget() []founding.Voter {
	before := s.before
	s.before = nil
	return before
}

// tell makes next return the given instances.
func (s *spreading) tell(attached []founding.Voter) { s.attached = attached }

func (s *spreading) push(to nodeid.ID, addr string, tries int) {
	if addr != "" {
		s.pushes = append(s.pushes, &pushing{to: to, addr: addr, tries: tries})
	}
}

// stop forgets the messages that are still to be sent.
func (s *spreading) stop() { s.pushes, s.attached = nil, nil }

// due returns the pushes to send now, and when the next one is due.
func (s *spreading) due(now time.Duration) (due []*pushing, next time.Duration) {
	next = now + idle
	var later []*pushing
	for _, a := range s.pushes {
		if a.due > now {
			later, next = append(later, a), min(next, a.due)
			continue
		}
		a.tries--
		due = append(due, a)
	}
	s.pushes = later
	return due, next
}

// next returns the attached instances to send the configuration to now.
func (s *spreading) next() (to []founding.Voter) {
	for s.telling < maxAsks && len(s.attached) > 0 {
		to = append(to, s.attached[0])
		s.attached = s.attached[1:]
		s.telling++
	}
	return to
}

// arrived records that a message to an attached instance has ended.
func (s *spreading) arrived() { s.telling-- }

// pushed records the outcome of a push.
func (s *spreading) pushed(now time.Duration, a *pushing, outcome founding.Outcome) {
	if outcome == founding.Silent && a.tries > 0 {
		a.due = now + pushPause
		s.pushes = append(s.pushes, a)
	}
}

// pullNow makes the next question for a newer configuration due at once.
func (s *spreading) pullNow() { s.pullAt = 0 }

// pulled counts a question for a newer configuration, and sets the time of the next one.
func (s *spreading) pulled(next time.Duration) {
	s.pullAt = next
	s.pulls++
}
