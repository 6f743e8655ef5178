package voters

import (
	"slices"
	"time"
)

// Steward is what a leader must remember to make a View of the Facts: whom it has asked, which
// lives are over, who was lost lately, and by which name. It decides nothing itself, and there is
// one for each instance, for all times that it leads. The zero value is ready. It belongs to one
// goroutine.
type Steward struct {
	view   View
	looked bool // view is of this lead
	// prepared has one entry for each instance, the last.
	prepared []Prepared
	known    []Registered // the last registration of each instance of the configuration
	retired  []ID         // replicas of the configuration, or asked for, that said so
	vigils   []vigil
	absences []absence
	losses   []loss
	beside   map[Instance]bool // those that have had the name of a replica beside it: they do not follow it
}

// Begin says that a new lead of this instance begins: what was asked and probed before means
// nothing now. What an ID or an instance is for ever stays, and so do the counts of losses.
func (s *Steward) Begin() {
	s.prepared = nil
	s.view, s.looked = View{}, false
	s.relent(func(ID) bool { return true })
	s.absences = slices.DeleteFunc(s.absences, func(a absence) bool { return !a.counted })
}

// Look is Reconcile of the facts and of what is remembered. fresh is a raft ID that was never used,
// 0: none; a Prepare in the answer uses it, and is remembered as asked. The caller looks again as
// Step says, and after Answered, Probed and Retired. After each Look come Probes.
func (s *Steward) Look(now time.Duration, f Facts, fresh ID) Step {
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

// Report is Explain of what the last Look saw. A voter whose stream has ended makes something due
// also while it was heard of a moment ago, and nobody has said yet that its life is over: who stops
// the next one now, since the last was replaced, would take the majority.
func (s *Steward) Report() Report {
	r := Explain(s.view)
	if r.Due {
		return r
	}
	for _, m := range look(s.view).voters {
		if !m.self && !m.Linked {
			r.Due, r.Next.Why = true, "the stream with "+m.label()+" has ended, and it is being asked whether it is still there"
			break
		}
	}
	return r
}

// MayStop is MayStop of what the last Look saw. Before the first Look of a lead nobody may.
func (s *Steward) MayStop(leaver ID) bool { return s.looked && MayStop(s.view, leaver) }

// AllLeaving is AllLeaving of what the last Look saw.
func (s *Steward) AllLeaving() bool { return AllLeaving(s.view) }

// Answered says what became of a Prepare. An answer to a question that this lead has not asked, or
// has asked anew since, is dropped: whoever answers the newer one has ended the older replica.
func (s *Steward) Answered(now time.Duration, id ID, state State) {
	for i := range s.prepared {
		p := &s.prepared[i]
		if p.ID == id && p.State != state && (p.State == Asked || state == Ended) {
			p.State, p.Since = state, now
		}
	}
}

// review ends the IDs that have been in a configuration or have retired, and forgets what means
// nothing any more.
func (s *Steward) review(now time.Duration, f Facts) {
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
	s.retired = slices.DeleteFunc(s.retired, func(id ID) bool {
		return !f.Config.has(id) && !slices.ContainsFunc(s.prepared, func(p Prepared) bool { return p.ID == id })
	})
}

// has reports whether an ID is in the configuration in any role.
func (c Config) has(id ID) bool {
	return slices.Contains(c.Voters, id) || slices.Contains(c.Outgoing, id) || slices.Contains(c.Learners, id)
}

// next is the time until the next look, given what Reconcile says.
func (s *Steward) next(least time.Duration) time.Duration {
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
