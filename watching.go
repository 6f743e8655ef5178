package mortise

import (
	"slices"
	"time"
)

// This file is how the leader tells those who watch. Whoever watches asks again and again for what has happened behind the last event that he has seen; as long
// as nothing has, the question waits here, for a while. All but idle runs on the goroutine that owns the state.

const (
	watchWait    = 2 * time.Second
	watchersMost = 1024 // on a leader
	watchPage    = 512  // events in one answer
)

// tell answers a watcher if something has happened, or if it cannot be known.
func (r *ownReplica) tell(one *looker) bool {
	q, s := &one.question, &one.answer
	events, upTo, known := r.core.Machine().Since(q.After, q.Key, watchPage)
	s.Events, s.Position, s.Missed, s.Leader, s.More = events, upTo, !known, r.id, upTo != r.core.Machine().Position()
	return len(events) > 0 || !known
}

// watch lets a watcher wait that there is nothing to tell.
func (r *ownReplica) watch(one *looker) {
	one.question.After = one.answer.Position
	one.watched.Store(one.answer.Position)
	r.lookers.watchers = append(r.lookers.watchers, one)
	r.lookers.watching.Store(int64(len(r.lookers.watchers)))
}

// tellWatchers answers those for whom something has happened. Each looks at each event once.
func (r *ownReplica) tellWatchers() {
	if len(r.lookers.watchers) == 0 {
		return
	}
	position := r.core.Machine().Position()
	r.lookers.watchers = slices.DeleteFunc(r.lookers.watchers, func(one *looker) bool {
		if one.left.Load() {
			return true
		}
		if one.question.After == position {
			return false
		}
		if r.tell(one) {
			close(one.done)
			return true
		}
		one.question.After = one.answer.Position
		one.watched.Store(one.answer.Position)
		return false
	})
	r.lookers.watching.Store(int64(len(r.lookers.watchers)))
}

// endWatches sends the watchers to another leader.
func (r *ownReplica) endWatches() {
	for _, one := range r.lookers.watchers {
		one.err = errNoLead
		close(one.done)
	}
	r.lookers.watchers = nil
	r.lookers.watching.Store(0)
}

// idle is what a watcher is told when nothing has happened for a while: how far that has been seen. It runs on the watcher's goroutine.
func (r *ownReplica) idle(one *looker) (sight, error) {
	one.left.Store(true)
	position := one.watched.Load()
	if position == 0 {
		return sight{}, errBusy // not even the round has come back
	}
	return sight{Position: position, Leader: r.id}, nil
}
