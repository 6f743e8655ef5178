package voters

import (
	"fmt"
	"slices"
	"time"
)

// step lets one tick pass.
func (w *world) step() {
	w.now += tick
	for _, r := range w.replicas {
		if r.runs && r.of.alive && !r.of.cut {
			r.heard = w.now
		}
	}
	for _, p := range w.procs {
		switch {
		case p.alive && !p.cut && w.leader != 0:
			p.sessionUntil = w.now + 10*time.Second
		case !p.alive && !p.announced && w.now > p.diedAt+time.Second:
			p.announced = true
		}
	}
	if w.careful && (!w.majority(w.config.Voters) || !w.majority(w.config.Outgoing)) {
		w.fail("the majority of %v is lost", w.config)
	}
	if w.leader != 0 && (!w.up(w.leader) || !w.majority(w.config.Voters) || !w.majority(w.config.Outgoing) || !slices.Contains(w.config.Voters, w.leader)) {
		w.leader, w.gone = 0, w.now
	}
	if w.leader == 0 {
		if w.now > w.gone+time.Second {
			w.elect()
		}
		w.leave(View{})
		return
	}
	w.commit()
	w.answer()
	v := w.view()
	w.leave(v)
	if seen := w.fingerprint(v); seen != w.seen || w.lookAt != 0 && w.now >= w.lookAt {
		w.carryOut(v, Reconcile(v))
		w.seen = w.fingerprint(w.view())
	}
}

// fingerprint is a view without the times: Reconcile is asked when it changes, and when the last Next is over, not more often. So a Next that
// is missing shows as a world that does not settle.
func (w *world) fingerprint(v View) string {
	v.Now, v.Fresh, v.Replicas = 0, 0, slices.Clone(v.Replicas)
	for i := range v.Replicas {
		v.Replicas[i].SilentFor = 0
	}
	return fmt.Sprint(v)
}

// leave ends those that may stop, and those whose time is over.
func (w *world) leave(v View) {
	for _, p := range w.procs {
		if p.leaving == 0 || !p.alive {
			continue
		}
		may := v.Self != 0 && !p.cut
		for id, r := range w.replicas {
			may = may && (r.of != p || !w.used[id] || MayStop(v, id))
		}
		if may && v.Self != 0 && w.replicas[v.Self].of == p {
			w.fail("the leader %d may stop, as it says itself", v.Self)
		}
		if may || !w.careful && w.now-p.leaving > 10*time.Second || !w.careful && v.Self != 0 && AllLeaving(v) {
			w.note("%s stops, allowed %v", p.name, may)
			w.crash(p)
		}
	}
}

// answer carries Prepare there and back.
func (w *world) answer() {
	for i := range w.prepared {
		q := &w.prepared[i]
		at := slices.IndexFunc(w.procs, func(p *proc) bool { return p.who == q.Instance })
		p := w.procs[at]
		if q.State != Asked || !p.alive || p.cut || p.leaving > 0 || !w.chance(0.5) {
			continue
		}
		q.Since = w.now
		if q.State = Running; !w.quiet && w.chance(0.1) {
			q.State = Refused
			continue
		}
		w.replicas[q.ID] = &replica{of: p, runs: true, caughtAt: 1 << 62, heard: w.now}
	}
}

// commit moves the change in flight on, if those whose votes it needs are up.
func (w *world) commit() {
	f := w.flight
	switch {
	case f == nil || !w.quiet && w.chance(0.3):
		return
	case f.step.Kind == AddLearner:
		w.config.Learners = append(slices.Clone(w.config.Learners), f.step.ID)
		w.used[f.step.ID] = true
		r := w.replicas[f.step.ID]
		r.caughtAt, r.heard = w.now+time.Duration(w.rng.IntN(20))*tick, max(r.heard, w.now)
	case !f.joint:
		f.joint = true
		next := after(w.config, f.step)
		next.Outgoing = slices.Clone(w.config.Voters)
		w.config = next
		return
	default:
		if !w.majority(w.config.Voters) || !w.majority(w.config.Outgoing) {
			return
		}
		w.config.Outgoing = nil
	}
	w.flight = nil
	w.changes++
	w.applied = w.now
	w.ended()
	if w.fickle {
		w.elect()
	}
}

// ended stops the replicas that are no longer in the configuration.
func (w *world) ended() {
	for id, r := range w.replicas {
		if w.used[id] && !slices.Contains(w.config.Voters, id) && !slices.Contains(w.config.Learners, id) {
			r.runs = false
			for i := range w.prepared {
				if w.prepared[i].ID == id && w.prepared[i].State != Ended {
					w.prepared[i].State, w.prepared[i].Since = Ended, w.now
				}
			}
		}
	}
}

// carryOut does what Reconcile says, after a look at it.
func (w *world) carryOut(v View, s Step) {
	if w.lookAt = 0; s.Next > 0 {
		w.lookAt = w.now + s.Next
	}
	if s.Kind == None {
		return
	}
	w.note("leader %d of %v %v: %v %d/%d +%v v%v -%v: %s", v.Self, v.Config.Voters, v.Config.Learners, s.Kind, s.ID, s.Instance, s.Promote, s.Demote, s.Remove, s.Why)
	if w.flight != nil || len(w.config.Outgoing) > 0 {
		w.fail("a step while a change is in flight")
	}
	switch s.Kind {
	case Prepare:
		w.lastID++
		w.prepared = append(w.prepared, Prepared{ID: s.ID, Instance: s.Instance, Since: w.now})
	case AddLearner:
		if w.used[s.ID] {
			w.fail("raft ID %d gets a second stay in the configuration", s.ID)
		}
		w.flight = &flight{step: s}
	case Change:
		w.check(v, s)
		w.flight = &flight{step: s}
	case Transfer:
		w.note("the lead goes to %d", s.ID)
		if w.up(s.ID) {
			w.lead(s.ID)
		}
	}
}

// check holds a change to what must be true of each.
func (w *world) check(v View, s Step) {
	t := &twin{v: v}
	t.survey()
	next := after(v.Config, s)
	if why := t.forbidden(next.Voters); why != "" && !slices.Equal(sorted(next.Voters), sorted(v.Config.Voters)) {
		w.fail("%s", why)
	}
	if len(next.Voters)%2 == 0 && !(len(v.Config.Voters) == 1 && !t.sound(v.Self) || len(next.Voters) == len(v.Config.Voters)) {
		w.fail("%d voters outside rule 12", len(next.Voters))
	}
	if t.spareLosses(next.Voters) < t.spareLosses(v.Config.Voters) && t.target == len(v.Config.Voters) {
		w.fail("the new voters stand fewer losses than the old")
	}
	for _, id := range s.Promote {
		if name := w.replicas[id].of.name; len(w.settings.Founders) > 0 && !slices.Contains(w.settings.Founders, name) {
			w.fail("%s votes and is no founder", name)
		}
	}
}

// spareLosses is how many more of the voters that stay and are heard of may be lost.
func (t *twin) spareLosses(set []ID) int {
	n := 0
	for _, id := range set {
		if t.sound(id) && t.active(id) {
			n++
		}
	}
	return n - (len(set)/2 + 1)
}

func (w *world) note(format string, about ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8v ", (w.now-time.Hour).Round(tick))+fmt.Sprintf(format, about...))
}

func (w *world) fail(format string, about ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, about...)
		w.note("FAULT: %s", w.fault)
	}
}
