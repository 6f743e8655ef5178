package founding

import (
	"slices"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// A bond describes the group that an incarnation is bound to or belongs to. The number of a
// configuration is the index of its log entry, or 1 for the charter's configuration.
type bond struct {
	phase      Phase
	charter    *Charter // nil for a newborn, and for a member that joined a founded group
	group      uint64
	voters     []Voter // empty until the group is founded or joined
	at         uint64  // number of the newest known configuration; 0 without a group
	supersedes []uint64
	rulesOf    Settings // settings of the group, unless phase is Newborn
	// newest configuration that this instance's replica has applied; if this instance runs no
	// replica, the newest one that any believed instance has applied
	applied Configuration
}

// resumeBond returns the bond that a directory holds.
func resumeBond(s *State) bond {
	b := bond{
		phase: s.Phase, charter: s.Charter, group: s.Group, voters: slices.Clone(s.Voters), at: max(s.At, 1),
		supersedes: slices.Clone(s.Supersedes), rulesOf: s.Settings.normal(),
	}
	if b.charter != nil && len(b.voters) == 0 {
		b.voters = slices.Clone(b.charter.Voters)
	}
	return b
}

// accept binds this incarnation to a charter.
func (b *bond) accept(ch *Charter) {
	b.phase, b.charter, b.group, b.rulesOf = Bound, ch, ch.Group, ch.Settings
	b.at, b.supersedes = 1, ch.Supersedes
}

// enter takes over what a member of a group with a leader says of the group, before belong.
func (b *bond) enter(who *InstanceInfo) {
	b.rulesOf, b.supersedes = who.Settings, slices.Clone(who.Supersedes)
}

func (b *bond) belong(group, at uint64, voters []Voter) {
	b.phase, b.group, b.at, b.voters = Member, group, max(at, 1), slices.Clone(voters)
}

// replace replaces the known configuration with a newer one.
func (b *bond) replace(at uint64, voters []Voter) {
	b.at, b.voters = at, slices.Clone(voters)
}

// readdress takes the addresses of voters from a configuration with the known number, and reports
// whether they changed.
func (b *bond) readdress(voters []Voter) (changed bool) {
	changed = !slices.Equal(b.voters, voters)
	b.voters = slices.Clone(voters)
	return changed
}

// regulate records the group's settings, and reports whether they changed.
func (b *bond) regulate(s Settings) (changed bool) {
	s = s.normal()
	if s.Solo == b.rulesOf.Solo && b.rulesOf.differs(s) == "" {
		return false
	}
	b.rulesOf = s
	return true
}

// apply records a configuration that a replica has applied.
func (b *bond) apply(applied Configuration) { b.applied = applied }

// applyOwn records a configuration that this instance's replica has applied, with both halves.
func (b *bond) applyOwn(group uint64, applied Configuration) {
	if b.group != group || b.phase == Newborn || len(applied.Voters) > maxVoters {
		return
	}
	b.apply(applied.whole())
}

func (b *bond) newest() []Voter {
	if len(b.voters) > 0 || b.charter == nil {
		return b.voters
	}
	return b.charter.Voters
}

func (b *bond) votes(instance nodeid.ID) bool {
	return slices.ContainsFunc(b.newest(), func(v Voter) bool { return v.Instance == instance && !v.Learner })
}

// moved returns a voter with the address of a newer start, which the voter itself has reported.
func (b *bond) moved(instance nodeid.ID, life uint64, addr string) (v Voter, changed bool) {
	at := slices.IndexFunc(b.voters, func(v Voter) bool { return v.Instance == instance })
	if at < 0 || b.voters[at].Life >= life || life > b.voters[at].Life+lifeJump {
		return Voter{}, false
	}
	return b.voters[at].again(life, addr), true
}
