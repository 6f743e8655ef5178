package voters

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"time"
)

// Reconciler adds to a leader's Facts what a View needs: the asked instances, the ended
// incarnations, recent losses, and names. It makes no decisions. An instance uses the same
// Reconciler in all its terms as leader. The zero value is ready to use. A Reconciler belongs to
// one goroutine.
type Reconciler struct {
	view   View
	looked bool // Look was called since Begin
	// prepared has the latest entry of each instance.
	prepared []Prepared
	known    []Registered       // last registration of each instance of the configuration
	retired  []nodeid.ReplicaID // retired IDs that are still in the configuration or in prepared
	vigils   []vigil
	absences []absence
	losses   []loss
	renewing bool // the facts of the last Look show a voter whose directory is lost
	crowd    crowd
	beside   map[nodeid.ID]bool // instances that had the name of a replica while it ran, and so do not replace it
}

// Begin must be called when this instance begins to lead. It drops earlier questions and probes. It
// keeps the retired IDs, the registrations, and the counts of losses.
func (s *Reconciler) Begin() {
	s.prepared = nil
	s.view, s.looked, s.crowd = View{}, false, crowd{}
	s.relent(func(nodeid.ReplicaID) bool { return true })
	s.absences = slices.DeleteFunc(s.absences, func(a absence) bool { return !a.counted })
}

// Look returns the result of Reconcile for the facts and the recorded data. fresh is a raft ID that
// was never used; zero means none. If the result is a Prepare, it uses this ID and is recorded as
// asked. Probes must be called after each Look.
func (s *Reconciler) Look(now time.Duration, f Facts, fresh nodeid.ReplicaID) Step {
	s.remember(f)
	s.namesakes(f)
	s.review(now, f)
	s.view = View{Now: now, Self: f.Self, Settings: f.Settings, Config: f.Config, Pending: f.Pending, Last: f.Last,
		Replicas:   s.watch(now, f),
		Registered: s.records(f), Others: f.Others, Prepared: slices.Clone(s.prepared), Fresh: fresh}
	s.count()
	s.crowd.look(now, f)
	for i := range s.view.Registered {
		r := &s.view.Registered[i]
		r.Lost = s.lost(r.Name)
	}
	s.looked = true
	step := Reconcile(s.view)
	if step.Kind == Prepare {
		s.asked(now, step)
	}
	step.Next = s.next(step.Next)
	return step
}

// asked records a Prepare. A question that is repeated keeps the time of the first one, until the
// instance has rested.
func (s *Reconciler) asked(now time.Duration, step Step) {
	p := Prepared{ID: step.ID, Instance: step.Instance, State: Asked, Since: now, Sent: now}
	s.prepared = slices.DeleteFunc(s.prepared, func(old Prepared) bool {
		if old.ID == p.ID && now-old.Since < preparing {
			p.Since = old.Since
		}
		return old.Instance == p.Instance
	})
	s.prepared = append(s.prepared, p)
}

// Report returns the result of Explain for the last Look. It also sets Renewing, and Due if the
// leader has no stream with a voter, since stopping the next instance could then remove the
// majority.
func (s *Reconciler) Report() Report {
	r := Explain(s.view)
	r.Renewing = s.renewing
	r.Surplus = s.crowd.surplus(s.view.Now)
	if r.Due {
		return r
	}
	now := look(s.view)
	for _, m := range now.voters {
		if !m.self && !m.Linked {
			r.Due, r.Next.Why, r.AwaitsReturn = true, checksVoter{m}.String(), now.irreplaceable()
			break
		}
	}
	return r
}

// MayStop returns the result of the function MayStop for the last Look. It returns false between
// Begin and the first Look.
func (s *Reconciler) MayStop(leaver nodeid.ReplicaID, at uint64) bool {
	return s.looked && MayStop(s.view, leaver, at)
}

// AllLeaving returns the result of the function AllLeaving for the last Look.
func (s *Reconciler) AllLeaving() bool { return AllLeaving(s.view) }

// Heir returns the result of the function Heir for the last Look.
func (s *Reconciler) Heir(name string) (nodeid.ReplicaID, Refusal) { return Heir(s.view, name) }

// Answered records the answer to a Prepare. It ignores an answer if the question was asked before
// Begin, or if the same instance was asked again since then.
func (s *Reconciler) Answered(now time.Duration, id nodeid.ReplicaID, state State) {
	for i := range s.prepared {
		p := &s.prepared[i]
		if p.ID == id && p.State != state && (p.State == Asked || state == Ended) {
			p.State, p.Since = state, now
		}
	}
}

// review sets the state Ended for IDs that are in the configuration or have retired. It drops
// entries that are not needed any more.
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
		kept := there && (p.State == Running || p.State == Asked) // if it is asked again, then by the same ID
		return now-p.Since >= 2*patience && !kept
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
