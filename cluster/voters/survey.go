package voters

import (
	"cmp"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// survey is a View whose replicas are sorted, joined with their instances, and checked by rules 8
// and 11.
type survey struct {
	v          View
	voters     []*member // by ID
	learners   []*member // by ID
	candidates []candidate
	self       *member // nil if this replica has no vote
	// eligible is the number of instances that could vote (rule 8). wanted is the number of
	// replicas that the group should have, and target is the number of voters that it should
	// have.
	eligible, wanted, target int
	// instances that refused or did not answer, and that are asked again later
	resting []string
	barred  reason   // why an instance is left out for now; may be nil
	surplus int      // instances without a vote because of Settings.Replicas
	notes   []reason // why some instances get no vote
	// onlySilent is set by decide if a step is due only because replicas are silent.
	onlySilent bool
}

// The limits of rule 11.
const (
	silenceInMemory = 5 * time.Second
	silenceDurable  = time.Minute
	silenceNamed    = time.Second // if the name was registered again; not 0, as names are not proved
)

func (s *survey) silence() time.Duration {
	if s.v.Settings.Durable {
		return silenceDurable
	}
	return silenceInMemory
}

func look(v View) *survey {
	s := &survey{v: v}
	records := s.records()
	for _, id := range sorted(v.Config.Voters) {
		s.voters = append(s.voters, s.member(id, true, records))
	}
	for _, id := range sorted(v.Config.Learners) {
		if !slices.Contains(v.Config.Voters, id) {
			s.learners = append(s.learners, s.member(id, false, records))
		}
	}
	for i, l := range s.learners {
		rival := func(m *member) bool { return m.fit() && s.rivals(l.info, m.info, l.Instance, m.Instance) }
		l.double = slices.ContainsFunc(s.voters, rival) || slices.ContainsFunc(s.learners[:i], rival)
	}
	for _, m := range s.voters {
		if m.self {
			s.self = m
		}
	}
	s.count(records)
	return s
}

// records returns the registrations, sorted. Several registrations of one instance are merged into
// the latest one.
func (s *survey) records() []Registered {
	var all []Registered
	list := slices.Clone(s.v.Registered)
	slices.SortFunc(list, func(a, b Registered) int {
		return cmp.Or(nodeid.Compare(a.Instance, b.Instance), cmp.Compare(b.Order, a.Order), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Zone, b.Zone))
	})
	for _, r := range list {
		if n := len(all); n > 0 && all[n-1].Instance == r.Instance {
			last := &all[n-1]
			last.Leaving, last.Reachable, last.Session = last.Leaving || r.Leaving, last.Reachable || r.Reachable,
				last.Session || r.Session
			last.Lost = max(last.Lost, r.Lost)
			continue
		}
		if !r.Instance.IsZero() {
			all = append(all, r)
		}
	}
	return all
}

func (s *survey) member(id nodeid.ReplicaID, voter bool, records []Registered) *member {
	m := &member{Replica: Replica{ID: id}, voter: voter, self: voter && id == s.v.Self}
	if i := slices.IndexFunc(s.v.Replicas, func(r Replica) bool { return r.ID == id }); i >= 0 {
		m.Replica = s.v.Replicas[i]
	}
	if i, ok := slices.BinarySearchFunc(records, m.Instance,
		func(r Registered, who nodeid.ID) int { return nodeid.Compare(r.Instance, who) }); ok {
		m.info, m.known = records[i], true
	}
	m.foreign = m.known && !s.founder(m.info.Name)
	if m.self {
		m.Active, m.CaughtUp, m.Full = true, true, true
		return m
	}
	m.Active = m.Active && !m.LifeOver
	over := m.LifeOver && !s.v.Settings.Durable
	m.dead = !m.Active && (over || m.Renewed && s.v.Settings.Durable || m.SilentFor >= s.silence())
	return m
}

func (s *survey) founder(name string) bool {
	return len(s.v.Settings.Founders) == 0 || slices.Contains(s.v.Settings.Founders, name)
}

// rivals reports whether two replicas must not both vote, because they belong to the same process
// or have the same name.
func (s *survey) rivals(a, b Registered, x, y nodeid.ID) bool {
	return !x.IsZero() && x == y || a.Name != "" && a.Name == b.Name
}

func sorted(ids []nodeid.ReplicaID) []nodeid.ReplicaID {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func where(list []*member, holds func(*member) bool) []*member {
	var some []*member
	for _, m := range list {
		if holds(m) {
			some = append(some, m)
		}
	}
	return some
}
