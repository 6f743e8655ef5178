package voters

import (
	"slices"
	"time"
)

// Report is what Status says about the voters. It tells people only; nothing is decided by it but
// whether Ready waits.
type Report struct {
	// Eligible is how many instances could vote (rule 8), Target how many should.
	Eligible, Target int
	// Quorum is set while a majority of the voters is heard of; of both majorities if the
	// configuration is joint.
	Quorum bool
	// Missing are the voters that are not heard of, by ID.
	Missing []Missing
	// CannotSurvive are the voters that are heard of and whose loss now would cost the majority, by
	// ID. Without a Quorum it is empty.
	CannotSurvive []ID
	// Due is set while a change of voters is due or in flight, also if it has to wait. A voter that
	// is silent but not yet dead makes it true: a rolling restart that went on now could take the
	// majority with it.
	Due bool
	// Next is the next step.
	Next Step
}

// Missing is a voter that is not heard of.
type Missing struct {
	// ID and Instance name it; Instance is 0 where it is not known.
	ID       ID
	Instance Instance
	// Name is the instance's name, empty where it is not known.
	Name string
	// SilentFor is how long this leader has not heard of it.
	SilentFor time.Duration
}

// Explain says how the voters stand. It is a pure function like Reconcile.
func Explain(v View) Report {
	s := look(v)
	r := Report{Eligible: s.eligible, Target: s.target}
	r.Next, r.Due = s.decide()
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
			r.Missing = append(r.Missing, Missing{ID: m.ID, Instance: m.Instance, Name: m.who.Name,
				SilentFor: m.SilentFor})
			continue
		}
		if r.Quorum && !(survives(s.voters, m.ID) && (len(outgoing) == 0 || survives(outgoing, m.ID))) {
			r.CannotSurvive = append(r.CannotSurvive, m.ID)
		}
	}
	return r
}

// survives reports whether a majority of the members is left if one of them goes.
func survives(list []*member, lost ID) bool {
	return len(where(list, func(m *member) bool { return m.Active && m.ID != lost })) > len(list)/2
}
