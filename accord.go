package mortise

import (
	"bytes"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// accord is the leader's part in what all instances have to agree on: settings that are adopted once all that stay name them (rule 15), and the
// version of the lock rules. It is looked at together with the voters, on the cluster's owner goroutine, which owns it.
type accord struct { // what was asked for last, and when
	term  uint64
	blob  []byte // settings to adopt
	rules uint32 // version to raise to
	at    clock.Time
}

// accordEvery is after how long the same thing is asked for again, in case it was lost.
const accordEvery = time.Second

// agreeOn asks the keeper to propose what all instances agree on, and notes what they do not agree on.
func (r *replica) agreeOn(term uint64, f *voters.Facts, registered *census) {
	group := r.settings.Load()
	if group == nil {
		return
	}
	own := proposed(r.node.config.group(), registered, r.node.isLeaving())
	a := agree(*group, own, registered, registered.longest())
	for _, d := range a.differ {
		f.Remarks = append(f.Remarks, d.String())
	}
	r.remarks.Store(&f.Remarks)
	now := r.node.env.clock.Now()
	last := &r.accord
	again := last.term != term || now.Sub(last.at) >= accordEvery
	if a.blob != nil && (again || !bytes.Equal(a.blob, last.blob)) {
		r.keeper.ProposeAdopt(term, a.adopt.SessionTTL, a.blob, a.adopt.budgets())
		last.term, last.at, last.blob = term, now, a.blob
	}
	var replicas []nodeid.ID
	for _, m := range f.Replicas {
		replicas = append(replicas, m.Instance)
	}
	if rules := supported(registered, replicas); rules > r.rules.Load() && (again || rules != last.rules) {
		r.keeper.ProposeRaise(term, rules)
		last.term, last.at, last.rules = term, now, rules
	}
}

// noteCharter takes what the state machine says about the group as a whole: at the start, and when that has changed.
func (r *replica) noteCharter() {
	charter := r.machine.Charter()
	r.rules.Store(charter.Rules)
	settings, err := presentSettings(charter)
	if err != nil {
		return // none were kept: they are longer than that; what this instance was told holds
	}
	r.settings.Store(&settings)
	r.node.cluster().Adopt(r.group, settings.birth(r.node.config.alone()))
}

// voting returns what of the group's settings decides who votes.
func (r *replica) voting() voters.Settings {
	settings := r.settings.Load()
	if settings == nil {
		own := r.node.config.group()
		settings = &own
	}
	return voters.Settings{Voters: settings.Voters, Founders: settings.Founders, Durable: r.node.dir != nil}
}

// remarks are the settings that differ, as this instance saw them at its last look as a leader.
func (n *Node) remarks() []string {
	r := n.replica.Load()
	if r == nil || r.remarks.Load() == nil {
		return nil
	}
	return *r.remarks.Load()
}
