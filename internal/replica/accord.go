package replica

import (
	"bytes"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Accord is the leader's part in what all instances have to agree on: settings that are adopted once
// all that stay name them (rule 15), and the version of the lock rules. It is looked at together with
// the voters, by one goroutine. The zero Accord has asked for nothing.
type Accord struct { // what was asked for last, and when
	term  uint64
	blob  []byte // settings to adopt
	rules uint32 // version to raise to
	at    clock.Time
}

// accordEvery is after how long the same thing is asked for again, in case it was lost.
const accordEvery = time.Second

// Stand is what holds in the group of a leader, and what the leader would have.
type Stand struct {
	Term    uint64
	Group   Settings // in force
	Own     Settings // of the leader's configuration
	Leaving bool     // the leader is
	Rules   uint32   // in force
}

// Wishes are what a leader is to propose to its group, and what its instances do not agree on.
type Wishes struct {
	Adopt  *Settings // nil: no change
	Blob   []byte    // Adopt as the state machine keeps it
	Raise  uint32    // version of the lock rules; 0: no change
	Differ []string  // for people, a sentence for each setting
}

// Look compares what the registered instances name with what holds. replicas are those that have a
// vote, or may get one.
func (a *Accord) Look(now clock.Time, p Stand, g *Registry, replicas []voters.Replica) Wishes {
	found := agree(p.Group, proposed(p.Own, &g.census, p.Leaving), &g.census, g.census.longest())
	var w Wishes
	for _, d := range found.differ {
		w.Differ = append(w.Differ, d.String())
	}
	again := a.term != p.Term || now.Sub(a.at) >= accordEvery
	if found.blob != nil && (again || !bytes.Equal(found.blob, a.blob)) {
		w.Adopt, w.Blob = &found.adopt, found.blob
		a.term, a.at, a.blob = p.Term, now, found.blob
	}
	var instances []nodeid.ID
	for _, r := range replicas {
		instances = append(instances, r.Instance)
	}
	if rules := supported(&g.census, instances); rules > p.Rules && (again || rules != a.rules) {
		w.Raise = rules
		a.term, a.at, a.rules = p.Term, now, rules
	}
	return w
}
