package replica

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/raftlog"
)

// SettingsAgreement computes the settings and rules that a leader should propose. Only the
// cluster's owner goroutine may use it. The zero value is ready to use.
type SettingsAgreement struct { // the last proposal and its time
	term  uint64
	blob  []byte
	rules uint32
	at    clock.Time
}

const agreeEvery = time.Second

// Own is the state of the leading instance itself.
type Own struct {
	Settings Settings
	Durable  bool // the instance has a directory
	Leaving  bool
}

// Stand contains the settings and rules in force, and the settings that the leader would propose.
type Stand struct {
	Own
	Term  uint64
	Group *Settings // settings in force; nil if unknown
	Rules uint32
}

// Proposals are the changes that a leader should propose, and the settings in which the instances
// differ.
type Proposals struct {
	Adopt  *Settings // nil for no change
	Blob   []byte
	Raise  uint32   // version of the lock rules; 0 for no change
	Differ []string // a sentence for operators about each differing setting
}

// Facts returns the facts about the possible voters, and the changes that the leader should
// propose. The facts come from the leader's log and the sessions. find looks up a replica in the
// address book, which may have a newer address. linked has the same meaning as in [Core.Facts].
func (a *SettingsAgreement) Facts(
	now clock.Time, p Stand, s *raftlog.Survey, g *SessionIndex, find func(raft uint64) (founding.Voter, bool),
	linked func(nodeid.ID) bool,
) (voters.Facts, Proposals) {
	settings := &p.Settings
	if p.Group != nil {
		settings = p.Group
	}
	f := facts(s, voters.Settings{Voters: settings.Voters, Founders: settings.Founders, Replicas: settings.Replicas,
		Rules: p.Rules, Durable: p.Durable}, find, linked)
	g.Read(&f, linked)
	if p.Group == nil {
		return f, Proposals{}
	}
	proposals := a.proposals(now, p, g, f.Replicas)
	f.Remarks = append(f.Remarks, proposals.Differ...)
	foundersDiffer := func(text string) bool { return strings.HasPrefix(text, "Founders: ") }
	if slices.ContainsFunc(proposals.Differ, foundersDiffer) {
		return f, proposals // a name of the new list may be right
	}
	if text := misnamed(&f); text != "" {
		f.Remarks = append(f.Remarks, text)
	}
	return f, proposals
}

func (a *SettingsAgreement) proposals(now clock.Time, p Stand, g *SessionIndex, replicas []voters.Replica) Proposals {
	found := agree(*p.Group, proposed(p.Settings, &g.census, p.Leaving), &g.census, g.census.longest())
	var w Proposals
	for _, d := range found.differ {
		w.Differ = append(w.Differ, d.String())
	}
	again := a.term != p.Term || now.Sub(a.at) >= agreeEvery
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
