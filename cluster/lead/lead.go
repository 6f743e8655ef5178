package lead

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Times of looking after the voters.
const (
	Pause = 50 * time.Millisecond // between two looks at the least

	every    = time.Second // while this instance leads and nothing says that anything has changed
	tryAgain = time.Second // before a step is handed to the log again, and all is as it was then
	never    = time.Hour
)

// Lead is the leader's look at the voters, and what became of it. The zero Lead has not looked; it
// is at rest on an instance that does not lead.
type Lead struct {
	steward voters.Steward
	leads   bool
	term    uint64
	looked  bool
	at      time.Duration // of the last look
	next    time.Duration // when the last step asks for another; 0: it does not
	facts   voters.Facts  // of the last look
	carried carried
	said    voters.Step // handed to the log last in this term
}

// carried is the step that was handed to the log last.
type carried struct {
	step  voters.Step
	facts voters.Facts
	until time.Duration // if nothing changes before, it is tried again then
}

// Orders are what a look asks for.
type Orders struct {
	Carry   *Carry         // nil: nothing for the log
	Prepare *voters.Step   // of which instance to ask that it starts an empty replica; nil: none
	Probes  []voters.Probe // lives of which to find out whether they are still there
}

// Carry is a step for the log.
type Carry struct {
	Term  uint64
	Step  voters.Step
	About founding.Voter // who is added
	Again bool           // it is the one before, which may have been lost
}

// Due is when to look. wanted says that the facts may have changed.
func (l *Lead) Due(now time.Duration, wanted bool) time.Duration {
	due := now + never
	if l.leads {
		due = l.at + every
		if l.next > 0 {
			due = min(due, l.next)
		}
	}
	if wanted {
		due = now
	}
	if l.looked {
		due = max(due, l.at+Pause)
	}
	return due
}

// Fresh reports whether the last look is so new that another would see the same.
func (l *Lead) Fresh(now time.Duration) bool { return l.looked && now-l.at < Pause }

// Leads reports whether this instance led at the last look.
func (l *Lead) Leads() bool { return l.leads }

// Rest is a look of an instance that does not lead.
func (l *Lead) Rest(now time.Duration) {
	l.at, l.looked = now, true
	l.Yield()
}

// Yield ends the part of a leader.
func (l *Lead) Yield() { l.leads, l.facts = false, voters.Facts{} }

// Look takes in what the leader of a term sees. fresh is a raft ID that was never used.
func (l *Lead) Look(now time.Duration, facts voters.Facts, term, fresh uint64) (o Orders) {
	l.at, l.looked = now, true
	if !l.leads || l.term != term {
		l.steward.Begin()
		l.leads, l.term = true, term
		l.carried, l.said = carried{}, voters.Step{}
	}
	step := l.steward.Look(now, facts, fresh)
	l.facts, l.next = facts, 0
	if step.Next > 0 {
		l.next = now + step.Next
	}
	switch step.Kind {
	case voters.None:
	case voters.Prepare:
		o.Prepare = &step
	default:
		o.Carry = l.carry(now, step)
	}
	o.Probes = l.steward.Probes(now)
	return o
}

// carry hands a step to the log, once: what the log does with it takes a while to show in the
// facts, and meanwhile every look asks for it.
func (l *Lead) carry(now time.Duration, step voters.Step) *Carry {
	if now < l.carried.until && step.Same(l.carried.step) && l.facts.Same(&l.carried.facts) {
		return nil
	}
	c := &Carry{Term: l.term, Step: step, Again: step.Same(l.said)}
	if step.Kind == voters.AddLearner {
		c.About = founding.Voter{Raft: step.ID, Instance: step.Instance, Addr: l.Where(step.Instance), Life: 1}
		if c.About.Addr == "" {
			return nil // its session has just ended
		}
	}
	l.carried = carried{step: step, facts: l.facts, until: now + max(step.Next, tryAgain)}
	l.said = step
	return c
}

// Where is the address of an instance, as the last look has seen it.
func (l *Lead) Where(instance nodeid.ID) string { return l.facts.Where(instance) }

// Attached returns the addresses of the instances whose sessions are attached to the leader, but
// for the replicas named, which hear of a new configuration by the log.
func (l *Lead) Attached(replicas []founding.Voter) (all []founding.Voter) {
	if !l.leads {
		return nil
	}
	named := make(map[nodeid.ID]bool, len(replicas))
	for _, v := range replicas {
		named[v.Instance] = true
	}
	for r := range l.facts.All() {
		if r.Session && r.Reachable && r.Addr != "" && !named[r.Instance] {
			all = append(all, founding.Voter{Instance: r.Instance, Addr: r.Addr})
		}
	}
	return all
}

// Report returns how the voters stood at the last look. Its slices must not be changed.
func (l *Lead) Report() voters.Report { return l.steward.Report() }

// Counsel is what the leader says about its voters, to an instance that asks for a replica.
type Counsel struct {
	MayStop    bool          // the replica that was asked about is not needed any more (rule 13)
	AllLeaving bool          // all instances in reach have said that they leave
	Due        bool          // a change of voters is due or in flight
	Known      bool          // the leader knows a session of the asking instance, and its look has counted it
	Report     voters.Report // of the leader's last look, at most 50 ms old; of Next only Kind and Why
	Leader     nodeid.ID     // the instance that leads
	Remarks    []string      // voters.Facts.Remarks of the leader, at most 64
}

// Counsel answers an instance that asks for a replica, by the last look. It reports false on one
// that does not lead. The caller names the leader.
func (l *Lead) Counsel(raft uint64, asker nodeid.ID) (Counsel, bool) {
	if !l.leads {
		return Counsel{}, false
	}
	report := l.steward.Report()
	return Counsel{
		MayStop: l.steward.MayStop(raft), AllLeaving: l.steward.AllLeaving(), Due: report.Due,
		Known:  l.facts.Knows(asker),
		Report: report, Remarks: l.facts.Remarks,
	}, true
}
