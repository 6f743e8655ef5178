package voters

import (
	"cmp"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// vigil contains the probes of a replica with which the leader has no stream. The probes detect
// the end of the replica's incarnation (rule 11).
type vigil struct {
	id      nodeid.ReplicaID
	away    bool      // the leader has no stream with the incarnation, which is not known to have ended
	over    bool      // after the end of the stream, a probe showed that the incarnation has ended
	by      nodeid.ID // the other instance that the probe met; zero means that the address refused
	waiting bool      // a probe is under way
	stale   bool      // the leader has had a stream since the probe was sent
	asked   time.Duration
	due     time.Duration
}

const (
	probeEvery = 100 * time.Millisecond
	// probePatience is how long a Reconciler and its caller wait for the answer to a probe.
	probePatience = 1500 * time.Millisecond
	maxRetired    = 64
)

// watch returns the replicas, with LifeOver set if the incarnation is known to have ended. It
// starts a vigil for each replica, except its own, with which the leader has no stream. It ends
// vigils that are not needed any more.
func (s *Reconciler) watch(now time.Duration, f Facts) []Replica {
	list := slices.Clone(f.Replicas)
	s.relent(func(id nodeid.ReplicaID) bool {
		return !slices.ContainsFunc(list, func(r Replica) bool {
			return r.ID == id && r.ID != f.Self && !r.Linked && !(f.Settings.Durable && s.heir(f, &r).IsZero())
		})
	})
	for i := range list {
		r := &list[i]
		if r.ID == f.Self {
			continue
		}
		named := s.replaced(f, r.Instance) && r.SilentFor >= silenceNamed
		r.LifeOver = s.probedOver(r.ID) && !f.Settings.Durable || named || slices.Contains(s.retired, r.ID)
		if !r.Linked && !f.Settings.Durable && !r.Instance.IsZero() && r.Addr != "" {
			s.vigil(now, r.ID).away = !r.LifeOver
		}
	}
	s.renew(now, f, list)
	return list
}

// renew sets Renewed for the first voter, or else learner, whose directory is lost. It starts a
// vigil for each replica whose name and address another instance claims, since only a probe shows
// that this instance is the one that answers there.
func (s *Reconciler) renew(now time.Duration, f Facts, list []Replica) {
	s.renewing = false
	if !f.Settings.Durable {
		return
	}
	votes := func(r *Replica) bool { return slices.Contains(f.Config.Voters, r.ID) }
	var chosen *Replica
	for i := range list {
		r := &list[i]
		heir := s.heir(f, r)
		if r.ID == f.Self || r.Linked || heir.IsZero() {
			continue
		}
		v := s.vigil(now, r.ID)
		met := v.over && v.by == heir
		if v.away = !met; !met {
			continue
		}
		s.renewing = s.renewing || votes(r)
		if s.rests(now, heir) {
			continue // without the heir, fewer instances would vote
		}
		if chosen == nil || votes(r) && !votes(chosen) || votes(r) == votes(chosen) && r.ID < chosen.ID {
			chosen = r
		}
	}
	if chosen != nil {
		chosen.Renewed = true
	}
}

// heir returns the instance that has registered with the name and the address of a replica's
// instance. Zero means none.
func (s *Reconciler) heir(f Facts, r *Replica) nodeid.ID {
	i := slices.IndexFunc(s.known, func(k Registered) bool { return k.Instance == r.Instance && k.Name != "" })
	if i < 0 || r.Addr == "" {
		return nodeid.ID{}
	}
	for _, o := range f.Registered {
		if o.Instance != r.Instance && o.Name == s.known[i].Name && o.Addr == r.Addr && o.Session && o.Reachable &&
			!o.Leaving {
			return o.Instance
		}
	}
	return nodeid.ID{}
}

// rests reports whether an instance has refused a Prepare, or not answered it for long.
func (s *Reconciler) rests(now time.Duration, instance nodeid.ID) bool {
	return slices.ContainsFunc(s.prepared, func(p Prepared) bool {
		age := now - p.Since
		return p.Instance == instance && (p.State == Refused && age < patience ||
			p.State == Asked && age >= preparing && age < preparing+patience)
	})
}

// relent ends the vigil of each replica for which the given function returns true. A vigil is
// kept while a probe is under way. Otherwise the answer could be taken for the answer to a later
// probe.
func (s *Reconciler) relent(holds func(nodeid.ReplicaID) bool) {
	for i := range s.vigils {
		if v := &s.vigils[i]; holds(v.id) {
			v.away, v.over, v.by, v.stale = false, false, nodeid.ID{}, v.waiting
		}
	}
	s.vigils = slices.DeleteFunc(s.vigils, func(v vigil) bool { return !v.waiting && holds(v.id) })
}

func (s *Reconciler) vigil(now time.Duration, id nodeid.ReplicaID) *vigil {
	i := slices.IndexFunc(s.vigils, func(v vigil) bool { return v.id == id })
	if i < 0 {
		i = len(s.vigils)
		s.vigils = append(s.vigils, vigil{id: id, due: now})
	}
	return &s.vigils[i]
}

func (s *Reconciler) probedOver(id nodeid.ReplicaID) bool {
	return slices.ContainsFunc(s.vigils, func(v vigil) bool { return v.id == id && v.over })
}

// replaced reports whether a later incarnation has registered with the name of an instance. Since
// a name is not proved, the later registration does not count if both instances had the name
// while both ran.
func (s *Reconciler) replaced(f Facts, who nodeid.ID) bool {
	i := slices.IndexFunc(s.known, func(r Registered) bool { return r.Instance == who && r.Name != "" })
	return i >= 0 && slices.ContainsFunc(f.Registered, func(r Registered) bool {
		beside := s.beside[r.Instance]
		return r.Session && r.Name == s.known[i].Name && r.Instance != who && r.Order > s.known[i].Order && !beside
	})
}

// namesakes records which instances have the name of a running replica. At the first Look of a
// leader, every replica counts as running.
func (s *Reconciler) namesakes(f Facts) {
	var beside map[nodeid.ID]bool
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
					beside = map[nodeid.ID]bool{}
				}
				beside[r.Instance] = true
			}
		}
	}
	s.beside = beside
}

// Probes returns the probes to send now, and records them as sent. They concern the replicas
// without a stream at the last Look. The first probe of a replica is due at once, further probes
// every 100 ms, but only one at a time. The caller ends a probe after 1.5 s. If Settings.Durable
// is set, only replicas are probed whose name and address another instance has registered.
func (s *Reconciler) Probes(now time.Duration) []Probe {
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

// Probed records the result of a Probe. over is true if the address refused the connection or
// another instance answered there. That instance is by. A result is ignored if there was a stream
// since the probe was sent.
func (s *Reconciler) Probed(now time.Duration, id nodeid.ReplicaID, over bool, by nodeid.ID) {
	for i := range s.vigils {
		switch v := &s.vigils[i]; {
		case v.id != id || !v.waiting:
		case v.stale:
			v.waiting, v.stale, v.due = false, false, now
		default:
			v.waiting, v.over, v.away, v.by = false, over, !over, by
		}
	}
}

// Retired records that a replica has reported its retirement. Its raft ID is never used again,
// though its instance may continue.
func (s *Reconciler) Retired(id nodeid.ReplicaID) {
	if !slices.Contains(s.retired, id) {
		s.retired = append(s.retired[max(0, len(s.retired)-maxRetired+1):], id)
	}
}

// remember keeps the registrations of the instances of the configuration. A session may end
// before the replica is removed, but the Name and Leaving of its instance are still needed.
func (s *Reconciler) remember(f Facts) {
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

func (s *Reconciler) records(f Facts) []Registered {
	list := slices.Clone(f.Registered)
	for _, k := range s.known {
		if !slices.ContainsFunc(f.Registered, func(r Registered) bool { return r.Instance == k.Instance }) {
			list = append(list, k)
		}
	}
	return list
}
