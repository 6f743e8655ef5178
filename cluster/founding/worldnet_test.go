package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

func (s *slot) put(q Question) {
	asked := s.w.now
	s.w.asked = append(s.w.asked, asked)
	s.send(q, func(outcome Outcome, from nodeid.ID, answer []byte) {
		s.core.Result(s.w.now, q.ID, asked, outcome, from, answer)
		s.tick()
	})
}

// send sends a question through the network. It calls the function `then` with the result, unless
// the process of s has ended.
func (s *slot) send(q Question, then func(Outcome, nodeid.ID, []byte)) {
	w, life, self := s.w, s.life, Asker{s.core.Instance(), s.addr}
	answered := false
	finish := func(after time.Duration, outcome Outcome, from nodeid.ID, answer []byte) {
		w.after(after, func() {
			if s.life != life || answered {
				return
			}
			answered = true
			then(outcome, from, answer)
		})
	}
	finish(time.Second, Silent, nodeid.ID{}, nil)
	w.after(w.hop(), func() {
		if w.silent[q.Addr] {
			return
		}
		at := slices.IndexFunc(w.slots, func(o *slot) bool { return o.addr == q.Addr })
		if at < 0 {
			// the machine has moved, and nothing listens at its old address
			finish(w.hop(), Refused, nodeid.ID{}, nil)
			return
		}
		to := w.slots[at]
		if w.lost(s, to) || w.lost(to, s) {
			w.repeat(self, q)
			return
		}
		if to.core == nil {
			finish(w.hop(), Refused, nodeid.ID{}, nil)
			return
		}
		late := w.rng.IntN(8) == 0 // the transport accepted the question just before this incarnation began
		if !q.To.IsZero() && q.To != to.core.Instance() && !late {
			finish(w.hop(), Other, nodeid.ID{}, nil)
			return
		}
		answer := to.core.Ask(w.now, to.wall(), self, q.Body)
		w.mustBeFinal(q, to, answer)
		w.repeat(self, q)
		if w.plant == "answer before save" && answer != nil {
			finish(w.hop(), Answered, to.core.Instance(), answer)
		}
		before := to.retired
		if !to.persist(nil) || to.retired != before {
			return
		}
		to.mustHaveStored("answers")
		w.mustBePrepared(to, answer)
		to.tick()
		if answer != nil {
			finish(w.hop(), Answered, to.core.Instance(), answer)
		}
	})
}

func (w *world) hop() time.Duration { return time.Duration(w.rng.Int64N(int64(w.delay))) + 1 }

func (w *world) lost(a, b *slot) bool { return w.cut[[2]int{a.id, b.id}] || w.rng.Float64() < w.loss }

// connected reports whether raft messages pass from a to b. Raft needs some time to reconnect a
// link that was cut. Questions use separate connections.
func (w *world) connected(a, b *slot) bool {
	pair := [2]int{min(a.id, b.id), max(a.id, b.id)}
	switch {
	case a == b:
		return true
	case !w.linked(a, b):
		w.joined[pair] = -1
		return false
	case w.joined[pair] < 0 && w.dials > 0:
		w.joined[pair] = w.now + time.Duration(w.rng.Int64N(int64(w.dials)))
	}
	return w.now >= w.joined[pair]
}

func (w *world) linked(a, b *slot) bool {
	return !w.cut[[2]int{a.id, b.id}] && !w.cut[[2]int{b.id, a.id}]
}
