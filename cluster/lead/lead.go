package lead

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	Pause = 50 * time.Millisecond // shortest time between two evaluations

	every = time.Second // time between two evaluations of a leader while nothing changes
	// the same for a leader that is alone: time alone changes nothing, and sessions are reported
	everyAlone = 5 * time.Second
	tryAgain   = time.Second // time until an unchanged step is passed to the log again
	never      = time.Hour
)

// Lead is a leader's evaluation of the voters and the steps that follow from it. The zero Lead has
// made no evaluation. A Lead takes no steps unless its instance leads.
type Lead struct {
	reconciler voters.Reconciler
	leads      bool
	term       uint64
	looked     bool
	idle       bool          // the last evaluation led to no step
	at         time.Duration // time of the last evaluation
	next       time.Duration // when the last step requests an evaluation; zero means never
	facts      voters.Facts  // the facts of the last evaluation
	carried    carried
	said       voters.Step // the step last passed to the log in this term
}

type carried struct {
	step  voters.Step
	facts voters.Facts
	until time.Duration // when the step is passed to the log again if nothing has changed
}

// Orders are the actions that follow from an evaluation.
type Orders struct {
	Carry   *Carry         // a step for the log; nil means none
	Prepare *voters.Step   // an instance to ask for an empty replica; nil means none
	Probes  []voters.Probe // incarnations to check
}

// Carry is a step for the log.
type Carry struct {
	Term  uint64
	Step  voters.Step
	About founding.Voter // the instance to add, for AddLearner
	Again bool           // the step repeats the previous step, which may be lost
}

// Due returns when to call Look or Rest. wanted is set if the facts may have changed.
func (l *Lead) Due(now time.Duration, wanted bool) time.Duration {
	due := now + never
	if l.leads {
		if due = l.at + every; l.alone() {
			due = l.at + everyAlone
		}
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

// alone reports whether no other instance had a replica, or could get one, at the last evaluation,
// and nothing had to be done.
func (l *Lead) alone() bool {
	return l.idle && len(l.facts.Replicas) <= 1 && len(l.facts.Registered) <= 1
}

// Fresh reports whether the last evaluation is less than Pause old.
func (l *Lead) Fresh(now time.Duration) bool { return l.looked && now-l.at < Pause }

// Leads reports whether this instance led at the last evaluation.
func (l *Lead) Leads() bool { return l.leads }

// Rest records an evaluation on an instance that does not lead.
func (l *Lead) Rest(now time.Duration) {
	l.at, l.looked = now, true
	l.Yield()
}

// Yield records that this instance does not lead any more.
func (l *Lead) Yield() { l.leads, l.facts = false, voters.Facts{} }

// Look evaluates the facts of the leader of a term. fresh is a raft ID that was never used.
func (l *Lead) Look(now time.Duration, facts voters.Facts, term, fresh uint64) (o Orders) {
	l.at, l.looked = now, true
	if !l.leads || l.term != term {
		l.reconciler.Begin()
		l.leads, l.term = true, term
		l.carried, l.said = carried{}, voters.Step{}
	}
	step := l.reconciler.Look(now, facts, fresh)
	l.facts, l.next = facts, 0
	if step.Next > 0 {
		l.next = now + step.Next
	}
	l.idle = step.Kind == voters.None
	switch step.Kind {
	case voters.None:
	case voters.Prepare:
		o.Prepare = &step
	default:
		o.Carry = l.carry(now, step)
	}
	o.Probes = l.reconciler.Probes(now)
	return o
}

// carry passes a step to the log once, although every evaluation returns the same step until the
// facts show its effect.
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

// Where returns the address of an instance at the last evaluation.
func (l *Lead) Where(instance nodeid.ID) string { return l.facts.Where(instance) }

// Attached returns the instances whose sessions are attached to the leader, without the given
// replicas, which receive a new configuration through the log.
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

// Report returns the state of the voters at the last evaluation. Its slices must not be changed.
func (l *Lead) Report() voters.Report { return l.reconciler.Report() }

// Heir is an answer of voters.Heir.
type Heir struct {
	Raft    nodeid.ReplicaID
	Refusal voters.Refusal
}

// Heir returns the voter to which an operator may move the leadership, as of the last evaluation.
// It reports false if this instance does not lead.
func (l *Lead) Heir(name string) (h Heir, leads bool) {
	if l.leads {
		h.Raft, h.Refusal = l.reconciler.Heir(name)
	}
	return h, l.leads
}

// VoterStatus is the leader's answer to an instance about the voters and a replica.
type VoterStatus struct {
	MayStop    bool          // the replica in question is no longer needed (rule 13 of package voters)
	AllLeaving bool          // all instances in contact have announced that they leave
	Due        bool          // a change of voters is due or in flight
	Known      bool          // at the last evaluation the asking instance had a session
	Report     voters.Report // the last report, at most 50 ms old; its Next has only Kind and Why
	Leader     nodeid.ID
	Remarks    []string // voters.Facts.Remarks of the leader, at most 64
}

// VoterStatus returns the state of the voters at the last evaluation, and whether the given
// replica may stop. It reports false if this instance does not lead. The parameter at is that of
// voters.MayStop. The caller sets the field Leader.
func (l *Lead) VoterStatus(raft nodeid.ReplicaID, at uint64, asker nodeid.ID) (VoterStatus, bool) {
	if !l.leads {
		return VoterStatus{}, false
	}
	report := l.reconciler.Report()
	return VoterStatus{
		MayStop: l.reconciler.MayStop(raft, at), AllLeaving: l.reconciler.AllLeaving(), Due: report.Due,
		Known:  l.facts.Knows(asker),
		Report: report, Remarks: l.facts.Remarks,
	}, true
}
