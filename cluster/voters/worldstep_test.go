package voters

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

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
	if w.leader != 0 && (!w.up(w.leader) || !w.majority(w.config.Voters) || !w.majority(w.config.Outgoing) ||
		!slices.Contains(w.config.Voters, w.leader)) {
		w.leader, w.gone = 0, w.now
	}
	if w.leader == 0 {
		if w.now > w.gone+time.Second {
			w.elect()
		}
		w.leave(nil)
		return
	}
	w.commit()
	w.answer()
	st, f := w.reconciler(), w.facts()
	if seen := w.fingerprint(f); seen != w.seen || w.lookAt != 0 && w.now >= w.lookAt {
		s := st.Look(w.now, f, w.lastID+1)
		w.seen = seen
		w.audit(st.view)
		w.carryOut(st.view, s)
	}
	if w.leader != f.Self {
		return
	}
	for _, p := range st.Probes(w.now) {
		w.questions = append(w.questions, question{term: w.term, by: w.replicas[w.leader].of, id: p.ID,
			instance: p.Instance, probe: true})
	}
	w.leave(st)
}

// fingerprint formats the facts without times. The world calls Look only when the fingerprint has
// changed, when an answer has arrived, or when the time in Step.Next has passed. So a step that
// should set Next, but does not, keeps the world from settling.
func (w *world) fingerprint(f Facts) string {
	f.Replicas = slices.Clone(f.Replicas)
	for i := range f.Replicas {
		f.Replicas[i].SilentFor = 0
	}
	return fmt.Sprint(f)
}

// audit compares the memory of the Reconciler with the truth.
func (w *world) audit(v View) {
	for _, r := range v.Replicas {
		if r.LifeOver && w.up(r.ID) {
			w.fail("%d is there, and taken for over", r.ID)
		}
		if r.Renewed && w.replicas[r.ID].of.alive {
			w.fail("the directory of %d is in use, and taken for lost", r.ID)
		}
	}
	for _, p := range v.Prepared {
		if p.State != Ended && w.used[p.ID] {
			w.fail("%d was in a configuration, and is %v", p.ID, p.State)
		}
	}
}

// leave ends the processes that may stop, and those whose time limit has passed.
func (w *world) leave(st *Reconciler) {
	for _, p := range w.procs {
		if p.leaving == 0 || !p.alive {
			continue
		}
		may := st != nil && !p.cut
		for id, r := range w.replicas {
			may = may && (r.of != p || !w.used[id] || st.MayStop(id, 0))
		}
		if may && w.replicas[w.leader].of == p {
			w.fail("the leader %d may stop, as it says itself", w.leader)
		}
		if may || !w.careful && w.now-p.leaving > 10*time.Second || !w.careful && st != nil && st.AllLeaving() {
			w.note("%s stops, allowed %v", p.name, may)
			w.crash(p)
		}
	}
}

// answer delivers questions and answers. The answer to a question of an earlier leader is lost, or
// reaches a Reconciler that has forgotten the question.
func (w *world) answer() {
	var open []question
	for _, q := range w.questions {
		p := w.procs[slices.IndexFunc(w.procs, func(p *proc) bool { return p.who == q.instance })]
		switch {
		case !w.chance(0.5):
			open = append(open, q)
		case q.probe:
			w.probed(q, p)
		case !p.alive || p.cut || p.leaving > 0 || q.term < p.asked.term || q.id < p.asked.id:
		case !w.quiet && w.chance(0.1):
			w.told(q, func(s *Reconciler) { s.Answered(w.now, q.id, Refused) })
		default:
			if p.asked.id != q.id { // otherwise the question is repeated
				if r := w.replicas[p.asked.id]; r != nil && !w.used[p.asked.id] {
					r.runs = false
				}
				w.replicas[q.id] = &replica{of: p, runs: true, caughtAt: 1 << 62, heard: w.now}
			}
			p.asked = q
			w.told(q, func(s *Reconciler) { s.Answered(w.now, q.id, Running) })
		}
	}
	w.questions = open
}

// probed answers a probe. A process that is cut off from the network may refuse connections, like
// a process that has ended.
func (w *world) probed(q question, p *proc) {
	switch {
	case w.settings.Durable && !p.alive && w.heir(p) != nil:
		w.told(q, func(s *Reconciler) { s.Probed(w.now, q.id, true, w.heir(p).who) })
	case p.cut && (w.mute || !w.chance(0.05)), !p.alive && !p.announced: // silence
	default:
		w.told(q, func(s *Reconciler) { s.Probed(w.now, q.id, !p.alive || p.cut, nodeid.ID{}) })
	}
}

// heir returns the process that uses the address of a process that has ended, or nil.
func (w *world) heir(p *proc) *proc {
	for _, o := range w.procs {
		if o != p && o.name == p.name && o.alive && !o.cut {
			return o
		}
	}
	return nil
}

func (w *world) told(q question, tell func(*Reconciler)) {
	if q.by.alive && !q.by.cut {
		tell(&q.by.reconciler)
		w.seen = ""
	}
}

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

func (w *world) ended() {
	for id, r := range w.replicas {
		if w.used[id] && !slices.Contains(w.config.Voters, id) && !slices.Contains(w.config.Learners, id) {
			r.runs = false
		}
	}
}

func (w *world) carryOut(v View, s Step) {
	if w.lookAt = 0; s.Next > 0 {
		w.lookAt = w.now + s.Next
	}
	if s.Kind == None {
		return
	}
	w.note("leader %d of %v %v: %v %d/%d +%v v%v -%v: %s", v.Self, v.Config.Voters, v.Config.Learners, s.Kind, s.ID,
		s.Instance, s.Promote, s.Demote, s.Remove, s.Why)
	if w.flight != nil || len(w.config.Outgoing) > 0 {
		w.fail("a step while a change is in flight")
	}
	switch s.Kind {
	case Prepare:
		w.lastID++
		w.questions = append(w.questions, question{term: w.term, by: w.replicas[w.leader].of, id: s.ID, instance: s.Instance})
	case AddLearner:
		if w.used[s.ID] {
			w.fail("raft ID %d is added to the configuration a second time", s.ID)
		}
		if r := w.replicas[s.ID]; r == nil || !r.runs && r.of.alive {
			w.fail("%d is added, and its instance runs no such replica", s.ID)
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

// check checks the properties that every change must have.
func (w *world) check(v View, s Step) {
	t := &twin{v: v}
	t.survey()
	next := after(v.Config, s)
	if why := t.forbidden(next.Voters); why != "" && !slices.Equal(sorted(next.Voters), sorted(v.Config.Voters)) {
		w.fail("%s", why)
	}
	if len(next.Voters)%2 == 0 && !(len(v.Config.Voters) == 1 && !t.sound(v.Self) ||
		len(next.Voters) == len(v.Config.Voters)) {
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

// spareLosses returns how many voters in contact may be lost without losing the majority.
func (t *twin) spareLosses(set []nodeid.ReplicaID) int {
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
