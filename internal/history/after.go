package history

import "math"

// aftermath judges what is left: the holds that the state keeps, and those whose callers were not
// told of their end.
type aftermath struct{ *evidence }

func (j aftermath) after() error {
	if err := j.checkCarried(); err != nil {
		return err
	}
	failed, pending := j.others()
	for i := range j.grants {
		g := &j.grants[i]
		var err error
		switch {
		case g.stay != nil:
			err = j.afterStay(g)
		case g.owner == nil && g.end < 0 && !pending[g.set]:
			err = j.orphan(g, failed[g.set])
		case g.owner != nil && g.ended == math.MaxInt64:
			err = j.unended(g)
		case g.owner != nil:
			err = j.zombie(g)
		}
		if err == nil {
			err = j.unasked(g)
		}
		if err != nil {
			return err
		}
	}
	j.strangers(failed, pending)
	return j.holes
}

// strangers finds sessions that released locks but have no calls in the history, because a file is
// missing. A stay may be released without a pass if a call failed or has no answer.
func (j aftermath) strangers(failed []int32, pending []bool) {
	for i := range j.grants {
		g := &j.grants[i]
		if g.stay != nil && (failed[g.set] >= 0 || pending[g.set]) {
			continue
		}
		e := &j.events[g.event]
		_, known := j.sessions[e.Session]
		if g.end >= 0 && j.events[g.end].How == ByRelease && !known {
			j.unsure("session %d has released token %d, and no file has its calls: is a file missing?",
				e.Session, e.Token)
			return
		}
	}
}

// checkCarried checks the holds at the beginning of each account that begins with a snapshot. They
// must agree with the accounts of the other voters up to the index of the snapshot.
func (j aftermath) checkCarried() error {
	for _, i := range j.carried {
		e := &j.events[i]
		at, known := j.byToken[uint64(e.Token)]
		if !known {
			return j.broken(Agree, []int32{i}, "the first state of a voter has %s held with token %d, which was never granted",
				e.asked(), e.Token)
		}
		g := &j.grants[at]
		granted := j.events[g.event]
		if g.shared >= 0 && j.events[g.shared].Rev <= e.Rev {
			granted.Permits, granted.Modes = j.events[g.shared].Permits, j.events[g.shared].Modes
		}
		if granted.Group != e.Group || !granted.alike(e) || granted.reserved() != e.reserved() || granted.Index > e.Index ||
			g.end >= 0 && j.events[g.end].Rev <= e.Rev {
			return j.broken(Agree, []int32{g.event, g.end, i},
				"the first state of a voter has %s held with token %d, but that token did not hold it at the voter's index",
				j.sets[g.set].name, e.Token)
		}
	}
	return nil
}

// others returns two values for each set: the last call that failed, and whether any call has no
// answer. These calls may own the grants whose tokens no call returned.
func (j aftermath) others() (failed []int32, pending []bool) {
	failed, pending = make([]int32, len(j.sets)), make([]bool, len(j.sets))
	for k := range failed {
		failed[k] = -1
	}
	for s := range j.streams {
		calls := j.streams[s].calls
		for i := range calls {
			c := &calls[i]
			switch {
			case c.called < 0:
			case c.ret < 0:
				pending[c.set] = true
			case j.events[c.ret].Outcome == Failed:
				if k := failed[c.set]; k < 0 || j.events[k].At < c.returned {
					failed[c.set] = c.ret
				}
			}
		}
	}
	return failed, pending
}

// late reports whether the absence of an event is a violation. The event had to follow the given
// time. Its absence is a violation if the recording is complete, or if the voters recorded for
// long enough after that time. The absence is never a violation if a later group exists.
func (j aftermath) late(g *grant, at int64) bool {
	return int(g.group) == len(j.groups)-1 && (j.settled || j.groups[g.group].last > at+j.settle+j.uncertain)
}

func (j aftermath) orphan(g *grant, failed int32) error {
	at := g.at
	if failed >= 0 {
		at = max(at, j.events[failed].At)
	}
	if !j.late(g, at) {
		return nil
	}
	return j.broken(Kept, []int32{g.event, failed},
		"%s was granted with token %d to a call that was told it holds nothing, and the state keeps the hold",
		j.sets[g.set].name, j.events[g.event].Token)
}

func (j aftermath) unended(g *grant) error {
	at, because := g.owner.believed()
	if because < 0 {
		return nil
	}
	events := []int32{g.event, because, g.owner.unlocked}
	if j.late(g, at) {
		return j.broken(Kept, events,
			"%s with token %d: its caller has released or lost it, but the group's state keeps the hold",
			j.sets[g.set].name, j.events[g.event].Token)
	}
	if u := g.owner.unlocked; u >= 0 && j.events[u].Err == "" && int(g.group) == len(j.groups)-1 {
		j.unsure("the voters' account ends before the release of token %d, which was confirmed", j.events[g.event].Token)
	}
	return nil
}

// zombie judges a grant that has ended. If the owner's node ran for long enough after the end, the
// owner must have recorded an Unlock or a Lost event.
func (j aftermath) zombie(g *grant) error {
	_, because := g.owner.believed()
	node := &j.streams[j.events[g.owner.ret].Stream]
	if because >= 0 || node.last <= g.ended+j.settle+j.uncertain {
		return nil
	}
	return j.broken(Zombie, []int32{g.owner.ret, g.event, g.end},
		"%s with token %d has ended, but its caller was not told", j.sets[g.set].name, j.events[g.owner.ret].Token)
}

// afterStay judges what is left of a stay. The state may keep a stay for as long as its session
// lives. A pass has ended when the stay has ended. If the stay is not shared, it has also ended
// when the next pass was returned.
func (j aftermath) afterStay(g *grant) error {
	if g.ended == math.MaxInt64 && j.settled && int(g.group) == len(j.groups)-1 {
		return j.broken(Kept, []int32{g.event}, "all locks have ended, but the state keeps the stay of %s with token %d",
			j.sets[g.set].name, j.events[g.event].Token)
	}
	ended, end := g.ended, g.end
	for i := len(g.stay.passes) - 1; i >= 0; i-- {
		p := &g.stay.passes[i]
		if p.owner == nil {
			continue
		}
		if p.ended, p.end = ended, end; ended != math.MaxInt64 {
			if err := j.zombie(&p.grant); err != nil {
				return err
			}
		}
		if p.owner.returned < ended && j.events[g.event].alone() {
			ended, end = p.owner.returned, p.owner.ret
		}
	}
	return nil
}

// unasked judges a downgraded grant. If the owner's node ran for long enough after the downgrade,
// the owner must have recorded that it acts as a reader, or that its hold has ended.
func (j aftermath) unasked(g *grant) error {
	if g.owner == nil || g.shared < 0 {
		return nil
	}
	_, because := g.owner.believedAlone()
	node := &j.streams[j.events[g.owner.ret].Stream]
	if because >= 0 || node.last <= j.events[g.shared].At+j.settle+j.uncertain {
		return nil
	}
	return j.broken(Zombie, []int32{g.owner.ret, g.event, g.shared},
		"%s with token %d has become shared, but its caller did not ask for it", j.sets[g.set].name,
		j.events[g.owner.ret].Token)
}
