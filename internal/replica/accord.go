package replica

import (
	"bytes"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/raftlog"
)

// Accord is the leader's part in what all instances have to agree on: settings that are adopted
// once all that stay name them (rule 15), and the version of the lock rules. It is looked at
// together with the voters, by one goroutine. The zero Accord has asked for nothing.
type Accord struct { // what was asked for last, and when
	term  uint64
	blob  []byte // settings to adopt
	rules uint32 // version to raise to
	at    clock.Time
}

// accordEvery is after how long the same thing is asked for again, in case it was lost.
const accordEvery = time.Second

// Own is what an instance would have.
type Own struct {
	Settings Settings // of its configuration
	Durable  bool     // it has a directory
	Leaving  bool     // it is
}

// Stand is what holds in the group of a leader, and what the leader would have.
type Stand struct {
	Own
	Term  uint64
	Group *Settings // in force; nil: not known
	Rules uint32    // in force
}

// Wishes are what a leader is to propose to its group, and what its instances do not agree on.
type Wishes struct {
	Adopt  *Settings // nil: no change
	Blob   []byte    // Adopt as the state machine keeps it
	Raise  uint32    // version of the lock rules; 0: no change
	Differ []string  // for people, a sentence for each setting
}

// Facts returns what a leader's log and the sessions show of who could vote, and what the leader is
// to propose. find is the address book, which may know a newer address of an instance; linked
// reports whether an instance is this one, or has a stream with it.
func (a *Accord) Facts(
	now clock.Time, p Stand, s *raftlog.Survey, g *Registry, find func(raft uint64) (founding.Voter, bool),
	linked func(nodeid.ID) bool,
) (voters.Facts, Wishes) {
	settings := &p.Settings
	if p.Group != nil {
		settings = p.Group
	}
	f := facts(s, voters.Settings{Voters: settings.Voters, Founders: settings.Founders, Durable: p.Durable}, find,
		linked)
	g.Read(&f, linked)
	if p.Group == nil {
		return f, Wishes{} // what holds is not known, so nothing is compared with it
	}
	wishes := a.look(now, p, g, f.Replicas)
	f.Remarks = append(f.Remarks, wishes.Differ...)
	return f, wishes
}

// look compares what the registered instances name with what holds. replicas are those that have a
// vote, or may get one.
func (a *Accord) look(now clock.Time, p Stand, g *Registry, replicas []voters.Replica) Wishes {
	found := agree(*p.Group, proposed(p.Settings, &g.census, p.Leaving), &g.census, g.census.longest())
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
