package voters

import (
	"cmp"
	"slices"
	"time"
)

// vigil is the watch over a replica that the leader has no stream with, to learn as soon as can be
// whether its life is over (rule 11).
type vigil struct {
	id      ID
	away    bool // there is no stream, and it is not known that the life is over
	over    bool // a probe has said so, since the stream ended
	waiting bool // for the answer to a probe
	stale   bool // there was a stream since that probe was asked
	asked   time.Duration
	due     time.Duration // when the next probe is
}

const (
	probeEvery = 100 * time.Millisecond
	// probePatience is after how long a probe without an answer is given up, here and by the
	// caller.
	probePatience = 1500 * time.Millisecond
	// retiredMax bounds what is kept between two looks.
	retiredMax = 64
)

// watch returns the replicas, judged: those that are known to be over are marked. The others
// without a stream are watched.
func (s *Steward) watch(now time.Duration, f Facts) []Replica {
	list := slices.Clone(f.Replicas)
	s.relent(func(id ID) bool {
		return !slices.ContainsFunc(list, func(r Replica) bool { return r.ID == id && r.ID != f.Self && !r.Linked })
	})
	for i := range list {
		r := &list[i]
		if r.ID == f.Self {
			continue
		}
		named := s.replaced(f, r.Instance) && r.SilentFor >= silenceNamed
		r.LifeOver = s.probedOver(r.ID) || named || slices.Contains(s.retired, r.ID)
		if !r.Linked && !f.Settings.Durable && !r.Instance.IsZero() && r.Addr != "" {
			s.vigil(now, r.ID).away = !r.LifeOver
		}
	}
	return list
}

// relent ends the vigils over those for whom it holds. One whose probe is under way is kept until
// that is over, so that its answer is not taken for that of a later one.
func (s *Steward) relent(holds func(ID) bool) {
	for i := range s.vigils {
		if v := &s.vigils[i]; holds(v.id) {
			v.away, v.over, v.stale = false, false, v.waiting
		}
	}
	s.vigils = slices.DeleteFunc(s.vigils, func(v vigil) bool { return !v.waiting && holds(v.id) })
}

// vigil returns the vigil over a replica, begun now if there was none.
func (s *Steward) vigil(now time.Duration, id ID) *vigil {
	i := slices.IndexFunc(s.vigils, func(v vigil) bool { return v.id == id })
	if i < 0 {
		i = len(s.vigils)
		s.vigils = append(s.vigils, vigil{id: id, due: now})
	}
	return &s.vigils[i]
}

func (s *Steward) probedOver(id ID) bool {
	return slices.ContainsFunc(s.vigils, func(v vigil) bool { return v.id == id && v.over })
}

// replaced reports whether the name of an instance has been registered anew, by a later life. A
// name is a claim: it says that a replica is over only if nothing was heard of that for a while,
// and only if it was not in use already while there was a stream with the replica, or when this
// lead began: such an instance runs beside the replica and follows nothing.
func (s *Steward) replaced(f Facts, who Instance) bool {
	i := slices.IndexFunc(s.known, func(r Registered) bool { return r.Instance == who && r.Name != "" })
	return i >= 0 && slices.ContainsFunc(f.Registered, func(r Registered) bool {
		beside := s.beside[r.Instance]
		return r.Session && r.Name == s.known[i].Name && r.Instance != who && r.Order > s.known[i].Order && !beside
	})
}

// namesakes remembers which instances have the name of a replica that lives, or had it when this
// lead began.
func (s *Steward) namesakes(f Facts) {
	var beside map[Instance]bool
	for _, k := range s.known {
		if k.Name == "" {
			continue
		}
		live := !s.looked || slices.ContainsFunc(f.Replicas, func(r Replica) bool {
			return r.Instance == k.Instance && (r.Linked || r.ID == f.Self)
		})
		for _, r := range f.Registered {
			if r.Name == k.Name && r.Instance != k.Instance && (live || s.beside[r.Instance]) {
				if beside == nil {
					beside = map[Instance]bool{}
				}
				beside[r.Instance] = true
			}
		}
	}
	s.beside = beside
}

// Probes returns whom to ask now, of those that the last Look saw no stream with, and counts them
// as asked: at once, then every 100 ms while it stays so. The caller gives a question up after 1.5
// s. With a directory nobody is asked, since nothing would come of it.
func (s *Steward) Probes(now time.Duration) []Probe {
	var list []Probe
	for i := range s.vigils {
		v := &s.vigils[i]
		at := slices.IndexFunc(s.view.Replicas, func(r Replica) bool { return r.ID == v.id })
		if at < 0 || !v.away || now < v.due || v.waiting && now < v.asked+probePatience {
			continue
		}
		v.waiting, v.stale, v.asked, v.due = true, false, now, now+probeEvery
		r := s.view.Replicas[at]
		list = append(list, Probe{ID: r.ID, Instance: r.Instance, Addr: r.Addr})
	}
	slices.SortFunc(list, func(a, b Probe) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Probed is what came of a Probe: over is set if its address refused, or another instance answered
// there. It is false if that instance answered, and if nobody did. What was asked before there was
// a stream again says nothing.
func (s *Steward) Probed(now time.Duration, id ID, over bool) {
	for i := range s.vigils {
		switch v := &s.vigils[i]; {
		case v.id != id || !v.waiting:
		case v.stale:
			v.waiting, v.stale, v.due = false, false, now
		default:
			v.waiting, v.over, v.away = false, over, !over
		}
	}
}

// Retired says that a replica has said itself that it has retired: it never comes back under that
// ID, though its instance may go on.
func (s *Steward) Retired(id ID) {
	if !slices.Contains(s.retired, id) {
		s.retired = append(s.retired[max(0, len(s.retired)-retiredMax+1):], id)
	}
}

// remember keeps the registrations of the instances of the configuration: the session of one that
// is gone ends before the replica is removed, and then its name and that it was leaving must still
// be known.
func (s *Steward) remember(f Facts) {
	var known []Registered
	for _, r := range slices.Concat(f.Registered, s.known) {
		if r.Instance.IsZero() || !slices.ContainsFunc(f.Replicas,
			func(m Replica) bool { return m.Instance == r.Instance }) {
			continue
		}
		i := slices.IndexFunc(known, func(k Registered) bool { return k.Instance == r.Instance })
		if i < 0 {
			i = len(known)
			known = append(known, r)
		}
		k := &known[i]
		leaving := k.Leaving || r.Leaving
		if r.Order > k.Order {
			*k = r
		}
		k.Leaving, k.Session, k.Reachable = leaving, false, false
	}
	s.known = known
}

// records returns the registrations, with those that are known only from memory.
func (s *Steward) records(f Facts) []Registered {
	list := slices.Clone(f.Registered)
	for _, k := range s.known {
		if !slices.ContainsFunc(f.Registered, func(r Registered) bool { return r.Instance == k.Instance }) {
			list = append(list, k)
		}
	}
	return list
}
