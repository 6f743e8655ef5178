package voters

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"time"
)

// Reconciler remembers what a leader needs to make a View of the Facts: which instances it has
// asked, which lives are over, which replicas were lost lately, and their names. It decides nothing
// itself. Each instance has one, for all its leads. The zero value is ready to use. A Reconciler
// belongs to one goroutine.
type Reconciler struct {
	view   View
	looked bool // view is of this lead
	// prepared has one entry for each instance, the last.
	prepared []Prepared
	known    []Registered       // the last registration of each instance of the configuration
	retired  []nodeid.ReplicaID // in the configuration or asked for
	vigils   []vigil
	absences []absence
	losses   []loss
	beside   map[nodeid.ID]bool // had a replica's name beside it: they do not replace it
}

// Begin starts a new lead of this instance. It forgets what was asked and probed before. It keeps
// what is true of an ID or an instance forever, and the counts of losses.
func (s *Reconciler) Begin() {
	s.prepared = nil
	s.view, s.looked = View{}, false
	s.relent(func(nodeid.ReplicaID) bool { return true })
	s.absences = slices.DeleteFunc(s.absences, func(a absence) bool { return !a.counted })
}

// Look returns Reconcile of the facts and of what is remembered. fresh is a raft ID that was never
// used; zero means none. A Prepare in the answer uses it and is remembered as asked. The caller
// must look again as Step says, and after Answered, Probed and Retired. It must call Probes after
// each Look.
func (s *Reconciler) Look(now time.Duration, f Facts, fresh nodeid.ReplicaID) Step {
	s.remember(f)
	s.namesakes(f)
	s.review(now, f)
	s.view = View{Now: now, Self: f.Self, Settings: f.Settings, Config: f.Config, Pending: f.Pending,
		Replicas:   s.watch(now, f),
		Registered: s.records(f), Others: f.Others, Prepared: slices.Clone(s.prepared), Fresh: fresh}
	s.count()
	for i := range s.view.Registered {
		r := &s.view.Registered[i]
		r.Lost = s.lost(r.Name)
	}
	s.looked = true
	step := Reconcile(s.view)
	if step.Kind == Prepare {
		s.prepared = slices.DeleteFunc(s.prepared, func(p Prepared) bool { return p.Instance == step.Instance })
		s.prepared = append(s.prepared, Prepared{ID: step.ID, Instance: step.Instance, State: Asked, Since: now})
	}
	step.Next = s.next(step.Next)
	return step
}

// Report is Explain of what the last Look saw. It also sets Due if the stream with a voter has just
// ended and its life is not yet known to be over. Otherwise an operator who stops the next instance
// then would take away the majority.
func (s *Reconciler) Report() Report {
	r := Explain(s.view)
	if r.Due {
		return r
	}
	for _, m := range look(s.view).voters {
		if !m.self && !m.Linked {
			r.Due, r.Next.Why = true, "the stream with "+m.label()+" has ended, and the leader is checking "+
				"whether it still runs"
			break
		}
	}
	return r
}

// MayStop is MayStop of what the last Look saw. It is false before the first Look of a lead.
func (s *Reconciler) MayStop(leaver nodeid.ReplicaID, at uint64) bool {
	return s.looked && MayStop(s.view, leaver, at)
}

// AllLeaving is AllLeaving of what the last Look saw.
func (s *Reconciler) AllLeaving() bool { return AllLeaving(s.view) }

// Answered records the answer to a Prepare. It ignores an answer to a question of another lead, or
// to one that was asked again: the newer Prepare has ended the older replica.
func (s *Reconciler) Answered(now time.Duration, id nodeid.ReplicaID, state State) {
	for i := range s.prepared {
		p := &s.prepared[i]
		if p.ID == id && p.State != state && (p.State == Asked || state == Ended) {
			p.State, p.Since = state, now
		}
	}
}

// review marks IDs that have been in a configuration or have retired as Ended. It drops entries
// that are no longer needed.
func (s *Reconciler) review(now time.Duration, f Facts) {
	for i := range s.prepared {
		p := &s.prepared[i]
		used := f.Config.has(p.ID)
		if p.State != Ended && (used || slices.Contains(s.retired, p.ID)) {
			p.State, p.Since = Ended, now
		}
	}
	s.prepared = slices.DeleteFunc(s.prepared, func(p Prepared) bool {
		there := slices.ContainsFunc(f.Registered, func(r Registered) bool { return r.Instance == p.Instance })
		return now-p.Since >= 2*patience && !(p.State == Running && there)
	})
	s.retired = slices.DeleteFunc(s.retired, func(id nodeid.ReplicaID) bool {
		return !f.Config.has(id) && !slices.ContainsFunc(s.prepared, func(p Prepared) bool { return p.ID == id })
	})
}

func (c Config) has(id nodeid.ReplicaID) bool {
	return slices.Contains(c.Voters, id) || slices.Contains(c.Outgoing, id) || slices.Contains(c.Learners, id)
}

func (s *Reconciler) next(least time.Duration) time.Duration {
	at := func(moment time.Duration) {
		if d := max(moment-s.view.Now, time.Millisecond); least == 0 || d < least {
			least = d
		}
	}
	for _, v := range s.vigils {
		switch {
		case !v.away:
		case v.waiting:
			at(v.asked + probePatience)
		default:
			at(v.due)
		}
	}
	for _, l := range s.losses {
		at(l.at + lossMemory)
	}
	return least
}
