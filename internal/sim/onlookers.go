package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file asks replicas that claim to lead whether a lock is held. A deposed leader must not
// answer from its old state.

// onlooker is a query whose answer is awaited, and what the watch has recorded about the lock.
type onlooker struct {
	w     *world
	r     *ownReplica
	asked *replica.Asked
	until time.Duration
	key   string
	token lockfsm.Token
	// caller that believes that it holds the lock; nil means that the release of token was
	// confirmed before the query
	by *call
}

// lookSome queries a leader about a lock that a caller believes it holds, or about a released lock.
func (w *world) lookSome() {
	var leaders []*ownReplica
	for r := range w.replicas() {
		if r.Role().Leading {
			leaders = append(leaders, r)
		}
	}
	if len(leaders) == 0 {
		return
	}
	a := &onlooker{w: w, r: leaders[w.rng.IntN(len(leaders))], until: w.now + replica.QuestionTime}
	var believers []*call
	for _, key := range slices.Sorted(maps.Keys(w.watch.believers)) {
		for _, c := range w.watch.believers[key] {
			if c.group == a.r.Group {
				believers = append(believers, c)
			}
		}
	}
	switch over := w.watch.gone; {
	case len(believers) > 0 && w.chance(0.7):
		a.by = believers[w.rng.IntN(len(believers))]
		a.key, a.token = a.by.keys()[0], a.by.stateToken()
	case over.group == a.r.Group:
		a.key, a.token = over.key, over.token
	default:
		return
	}
	var err error
	if a.asked, err = a.r.glue.Questions.Ask(replica.Question{Op: replica.OpCheck, Key: a.key,
		Token: uint64(a.token)}); err != nil {
		return
	}
	term, round := a.r.Role().Term, replica.QuestionRound|a.asked.Number
	a.r.log.post(func(clock.Time) { a.r.core.Confirm(term, round) })
	w.after(w.between(0, 5*time.Millisecond), a.wait)
}

func (a *onlooker) wait() {
	select {
	case <-a.asked.Done():
	default:
		if a.w.now < a.until && !a.r.log.gone() {
			a.w.after(a.w.between(0, 5*time.Millisecond), a.wait)
			return
		}
		a.r.glue.Questions.Drop(a.asked)
		return
	}
	answer, err := a.asked.Answer()
	if err != nil {
		return
	}
	a.w.watch.stats.Checked++
	switch c := a.by; {
	case c == nil && answer.Held:
		a.w.broken("%s says that %q is held with token %d, whose release was confirmed before the question", a.r.judgedAs,
			a.key, a.token)
	case c != nil && !answer.Held && !c.forced && !c.lapsed && a.w.watch.beliefs.Believes(a.key, c.caller()):
		a.w.broken("%s says that %q is not held with token %d, and call %d believes in it", a.r.judgedAs, a.key, a.token,
			c.id)
	}
}
