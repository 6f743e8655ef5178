package cluster

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"

	"encoding/binary"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// script contains what a node's host reports about the voters, and the calls that the host
// received. It is guarded by node.mu.
type script struct {
	facts  voters.Facts
	term   uint64 // term as leader; zero means that the node does not lead
	asked  []time.Time
	steps  []carry
	led    Voter // what Guide and Leader return
	spread [][]Voter
}

type carry struct {
	at    time.Time
	term  uint64
	step  voters.Step
	about Voter
}

func (n *node) Prepared(group, raft uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note("prepared")
	n.raft, n.group = raft, group
}

func (n *node) Removed(raft uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note("removed")
	if n.raft == raft {
		n.raft = 0
	}
}

func (n *node) Dismissed(raft uint64) { n.Retired(raft) }

func (n *node) Facts() (voters.Facts, uint64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, time.Now())
	return n.facts, n.term, n.term != 0
}

func (n *node) Carry(term uint64, step voters.Step, about Voter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.steps = append(n.steps, carry{at: time.Now(), term: term, step: step, about: about})
}

func (n *node) Guide() nodeid.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.led.Instance
}

func (n *node) Leader() (nodeid.ID, string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.led.Instance, n.led.Addr
}

// lead makes the node lead in a term with these facts, and calls Look. Term 0 makes the node
// follow.
func (n *node) lead(term uint64, facts voters.Facts) {
	n.mu.Lock()
	n.term, n.facts = term, facts
	n.mu.Unlock()
	n.Look()
	n.f.settle()
}

// looks returns the times at which the host was asked for its facts. It omits the times before
// the argument since.
func (n *node) looks(since time.Time) []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.asked), func(at time.Time) bool { return at.Before(since) })
}

// carriedOut returns the steps that the host received.
func (n *node) carriedOut() []carry {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.steps)
}

// toldVoters returns how often the host received an address book, and the last address book.
func (n *node) toldVoters() (int, []Voter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.spread) == 0 {
		return 0, nil
	}
	return len(n.spread), n.spread[len(n.spread)-1]
}

// follows sets the leader that n knows. A nil leader means that n knows none.
func (n *node) follows(leader *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.led = Voter{}
	if leader != nil {
		n.led = Voter{Instance: leader.instance, Addr: leader.cfg.Advertise}
	}
}

// place returns the entry of the node's replica in a configuration.
func (n *node) place() Voter {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Voter{Raft: n.raft, Instance: n.instance, Addr: n.cfg.Advertise, Life: 1}
}

// registered returns the leader's record of the node's session.
func (n *node) registered() voters.Registered {
	p := n.place()
	return voters.Registered{
		Instance: p.Instance, Name: n.cfg.Name, Zone: n.cfg.Zone, Addr: p.Addr,
		Order: binary.BigEndian.Uint64(p.Instance[:]), Session: true, Reachable: true,
	}
}

// group simulates the log of a group. It applies the leader's steps without delay, and shows the
// result in the facts.
type group struct {
	f       *fleet
	leader  *node
	id      uint64
	at      uint64
	config  []Voter
	applied int // number of applied steps of the leader
	missing map[uint64]time.Time
	before  func(c carry) // called before a step is applied; may be nil
}

func (f *fleet) newGroup() *group {
	f.t.Helper()
	g := &group{f: f, leader: f.nodes[0], id: f.oneGroup(), at: 1, missing: map[uint64]time.Time{}}
	g.config = g.leader.Status().Voters
	return g
}

// see returns the facts of the leader.
func (g *group) see() voters.Facts {
	facts := voters.Facts{Self: g.leader.place().Raft, Settings: voters.Settings{Voters: 3}}
	for _, n := range g.f.nodes {
		facts.Registered = append(facts.Registered, n.registered())
	}
	for _, v := range g.config {
		r := voters.Replica{ID: v.Raft, Instance: v.Instance, Addr: v.Addr}
		if g.f.here(v) {
			r.Linked, r.Active, r.CaughtUp, r.Full, r.Settled = true, true, true, true, true
			delete(g.missing, v.Raft)
		} else {
			if g.missing[v.Raft].IsZero() {
				g.missing[v.Raft] = time.Now()
			}
			r.SilentFor = time.Since(g.missing[v.Raft])
		}
		facts.Replicas = append(facts.Replicas, r)
		if v.Learner {
			facts.Config.Learners = append(facts.Config.Learners, v.Raft)
		} else {
			facts.Config.Voters = append(facts.Config.Voters, v.Raft)
		}
	}
	return facts
}

// here reports whether a running node has the instance and the address of v, and is not silenced.
func (f *fleet) here(v Voter) bool {
	f.net.mu.Lock()
	mute := f.net.mute[v.Addr]
	f.net.mu.Unlock()
	return !mute && slices.ContainsFunc(f.nodes, func(n *node) bool {
		return n.instance == v.Instance &&
			n.cfg.Advertise == v.Addr
	})
}

func (g *group) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		steps := g.leader.carriedOut()
		for ; g.applied < len(steps); g.applied++ {
			g.apply(steps[g.applied])
		}
		g.leader.lead(1, g.see())
		g.f.raft(10 * time.Millisecond)
	}
}

// apply builds the configuration that a step requests. It reports this configuration as applied
// to every node in it.
func (g *group) apply(c carry) {
	if g.before != nil {
		g.before(c)
	}
	g.at += 3
	config := slices.Clone(g.config)
	if c.step.Kind == voters.AddLearner {
		v := c.about
		v.Learner = true
		config = append(config, v)
	}
	for i := range config {
		if slices.Contains(c.step.Promote, config[i].Raft) {
			config[i].Learner = false
		}
		if slices.Contains(c.step.Demote, config[i].Raft) {
			config[i].Learner = true
		}
	}
	g.config = slices.DeleteFunc(config, func(v Voter) bool { return slices.Contains(c.step.Remove, v.Raft) })
	for _, n := range g.f.nodes {
		if slices.ContainsFunc(g.config, func(v Voter) bool { return v.Instance == n.instance }) {
			n.Configured(g.id, g.at, g.config)
		}
	}
	g.f.settle()
}
