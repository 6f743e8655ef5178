package voters

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"time"
)

// Report describes the voters for Status. Only the fields Due, Renewing and AwaitsReturn have an
// effect: they decide whether Ready waits.
type Report struct {
	// Eligible is the number of instances that could vote (rule 8). Target is the number that
	// should vote.
	Eligible, Target int
	// Votes is the number of voters. Only a Report of this instance has it.
	Votes int
	// Quorum is set while the leader is in contact with a majority of the voters. A joint
	// configuration needs both majorities.
	Quorum bool
	// Missing are the voters out of contact with the leader, by ID.
	Missing []Missing
	// CannotSurvive are the voters whose loss now would cost the majority, by ID. It is empty
	// without a Quorum.
	CannotSurvive []nodeid.ReplicaID
	// Due is set while a change of voters is due or in flight. It is also set while a voter is
	// silent and not yet dead, since a rolling restart could otherwise continue and remove the
	// majority.
	Due bool
	// Renewing is set while a voter is replaced that has lost its directory: another instance with
	// its name answers at its address. Only a Reconciler sets it.
	Renewing bool
	// AwaitsReturn is set if Due is set only because replicas with a directory are silent, and no
	// instance runs that could replace them. Nothing but their return helps then, and Ready does not
	// wait for it: after the failure of a whole site it would keep all that came back from working.
	AwaitsReturn bool
	Next         Step
	// Surplus is nil unless more instances run than Settings.Replicas allows. Only a Reconciler
	// sets it.
	Surplus *Surplus
}

// Missing is a voter out of contact with the leader.
type Missing struct {
	// Instance is zero if unknown.
	ID       nodeid.ReplicaID
	Instance nodeid.ID
	// Name is empty if unknown.
	Name string
	// SilentFor is how long this leader has had no contact with the voter. If Heard is not set,
	// this leader has never had contact, so the voter may have been silent for longer.
	SilentFor time.Duration
	Heard     bool
}

// Explain describes the state of the voters. Like Reconcile it is a pure function.
func Explain(v View) Report {
	s := look(v)
	r := Report{Eligible: s.eligible, Target: s.target, Votes: len(s.voters)}
	r.Next, r.Due = s.decide()
	r.AwaitsReturn = s.onlySilent && s.irreplaceable()
	outgoing := []*member{}
	records := s.records()
	for _, id := range sorted(v.Config.Outgoing) {
		m := s.member(id, true, records)
		outgoing = append(outgoing, m)
	}
	both := slices.Clone(s.voters)
	for _, m := range outgoing {
		if !slices.Contains(v.Config.Voters, m.ID) {
			both = append(both, m)
		}
	}
	slices.SortFunc(both, func(a, b *member) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	r.Quorum = majority(s.voters) && (len(outgoing) == 0 || majority(outgoing))
	for _, m := range both {
		if !m.Active {
			r.Missing = append(r.Missing, Missing{ID: m.ID, Instance: m.Instance, Name: m.info.Name,
				SilentFor: m.SilentFor, Heard: m.Heard})
			continue
		}
		if r.Quorum && !(survives(s.voters, m.ID) && (len(outgoing) == 0 || survives(outgoing, m.ID))) {
			r.CannotSurvive = append(r.CannotSurvive, m.ID)
		}
	}
	return r
}

func survives(list []*member, lost nodeid.ReplicaID) bool {
	return len(where(list, func(m *member) bool { return m.Active && m.ID != lost })) > len(list)/2
}
