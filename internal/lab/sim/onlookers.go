package sim

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file asks replicas that claim to lead whether a lock is held, for IDs, and to write data
// that a hold guards. A deposed leader must not answer from its old state.

// onlooker is a query whose answer is awaited, and what the watch has recorded about the lock.
type onlooker struct {
	w     *fleet
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
func (w *fleet) lookSome() {
	r := w.someLeader()
	if r == nil {
		return
	}
	a := &onlooker{w: w, r: r, until: w.now + replica.QuestionTime}
	believers := w.believersIn(r.Group)
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

// someLeader returns one of the replicas that claim to lead, or nil.
func (w *fleet) someLeader() *ownReplica {
	var leaders []*ownReplica
	for r := range w.replicas() {
		if r.Role().Leading {
			leaders = append(leaders, r)
		}
	}
	if len(leaders) == 0 {
		return nil
	}
	return leaders[w.rng.IntN(len(leaders))]
}

func (w *fleet) believersIn(group uint64) (believers []*call) {
	for _, key := range slices.Sorted(maps.Keys(w.watch.calls.believers)) {
		for _, c := range w.watch.calls.believers[key] {
			if c.group == group {
				believers = append(believers, c)
			}
		}
	}
	return believers
}

func (a *onlooker) wait() {
	answer := a.answer(a.wait)
	if answer == nil {
		return
	}
	a.w.stats.Checked++
	switch c := a.by; {
	case c == nil && answer.Held:
		a.w.broken("%s says that %q is held with token %d, whose release was confirmed before the question", a.r.judgedAs,
			a.key, a.token)
	case c != nil && !answer.Held && !c.forced && !c.own.lapsed && a.w.watch.calls.beliefs.Believes(a.key, c.caller()):
		a.w.broken("%s says that %q is not held with token %d, and call %d believes in it", a.r.judgedAs, a.key, a.token,
			c.id)
	}
}

// answer returns the answer, or nil if there is none. If there is none yet, it calls again later.
func (a *onlooker) answer(again func()) *replica.Answer {
	select {
	case <-a.asked.Done():
	default:
		if a.w.now < a.until && !a.r.log.gone() {
			a.w.after(a.w.between(0, 5*time.Millisecond), again)
			return nil
		}
		a.r.glue.Questions.Drop(a.asked)
		return nil
	}
	a.r.glue.Questions.Drop(a.asked)
	if answer, err := a.asked.Answer(); err == nil {
		return answer
	}
	return nil // the replica has refused the question
}

// change asks r for a change, and calls told with the answer, if one comes.
func (w *fleet) change(r *ownReplica, q replica.Question, told func(*replica.Answer)) {
	a := &onlooker{w: w, r: r, until: w.now + replica.QuestionTime}
	var err error
	if a.asked, err = r.glue.Questions.Ask(q); err != nil {
		return
	}
	command, _ := q.Command(a.asked.Number)
	stamp := lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: r.p.m.wallUnixMS()}
	term, blob := r.Role().Term, command.Append(stamp.Append(nil))
	r.log.post(func(clock.Time) { r.core.Propose(term, blob) })
	var wait func()
	wait = func() {
		if answer := a.answer(wait); answer != nil {
			told(answer)
		}
	}
	w.after(w.between(0, 5*time.Millisecond), wait)
}

// reserveSome asks a leader for IDs. No two answers may share one, and those of a later question
// must be higher.
func (w *fleet) reserveSome() {
	r := w.someLeader()
	if r == nil {
		return
	}
	known := w.watch.writtenIn(r.Group)
	count, before := uint64(1+w.rng.IntN(1000)), len(known.ids)
	w.change(r, replica.Question{Op: replica.OpReserve, After: count}, func(answer *replica.Answer) {
		if answer.Code != lockfsm.Done {
			return
		}
		w.stats.Reserved++
		now := span{answer.First, answer.First + count - 1}
		for i, earlier := range known.ids {
			if i < before && now.first <= earlier.last || now.first <= earlier.last && earlier.first <= now.last {
				w.broken("%s gives the IDs %v, and %v were given before the question: %v", r.judgedAs, now, earlier, i < before)
			}
		}
		known.ids = append(known.ids, now)
	})
}

// writeSome lets a caller that believes in an exclusive hold write under it, at once or so late
// that the hold has probably ended. What is written must have rising tokens.
func (w *fleet) writeSome() {
	r := w.someLeader()
	if r == nil {
		return
	}
	// A downgrade makes a hold shared, and a resumed one may be.
	believers := slices.DeleteFunc(w.believersIn(r.Group), func(c *call) bool { return !c.termsOf(0).Alone() })
	if len(believers) == 0 {
		return
	}
	c, thinks := believers[w.rng.IntN(len(believers))], time.Duration(0)
	if w.chance(0.5) {
		thinks = w.cfg.TTL
	}
	key, token := c.keys()[0], c.stateToken()
	w.after(w.between(0, thinks), func() {
		if now := w.someLeader(); now != nil && now.Group == r.Group && !w.quiet {
			w.write(now, key, token)
		}
	})
}

func (w *fleet) write(r *ownReplica, key string, token lockfsm.Token) {
	known := w.watch.writtenIn(r.Group)
	q := replica.Question{Op: replica.OpPut, Key: writtenUnder + key, Lock: key, Token: uint64(token),
		Value: strconv.AppendUint(nil, uint64(token), 10)}
	if all := known.data[key]; len(all) > 0 {
		q.After = uint64(all[len(all)-1].revision)
	}
	q.Nonce[0], q.Nonce[1], q.Nonce[2] = 1, byte(w.rng.IntN(256)), byte(w.rng.IntN(256))
	w.change(r, q, func(answer *replica.Answer) {
		switch answer.Code {
		case lockfsm.Done:
			w.stats.Written++
		case lockfsm.Changed: // by an earlier change whose answer was lost
		default:
			return
		}
		by, _ := strconv.ParseUint(string(answer.Data.Value), 10, 64)
		all := append(known.data[key], note{answer.Data.Revision, lockfsm.Token(by)})
		slices.SortFunc(all, func(a, b note) int { return cmp.Compare(a.revision, b.revision) })
		for i := range all {
			if i > 0 && all[i].token < all[i-1].token {
				w.broken("%q: the hold with token %d writes after that with %d", key, all[i].token, all[i-1].token)
			}
		}
		known.data[key] = all
	})
}
