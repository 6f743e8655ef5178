package lockfsm

import "slices"

// requestCharge returns the charge of a request. The twin computes charges from its whole state,
// with the numbers of budget.go as literals.

func (t *twin) requestCharge(e twinEntry) (sum uint64) {
	for _, key := range e.keys {
		sum += 352 + 256 + 6*uint64(len(key))
	}
	return sum + restOf(e)
}

func restOf(e twinEntry) uint64 {
	if len(e.keys) == 1 && e.owner == 0 && len(e.value) == 0 && e.delay == 0 && !e.sticky && e.seq == 0 {
		return 0
	}
	return 192 + 6*uint64(len(e.value))
}

func (s *twinSession) ownCharge() uint64 {
	if s.rights == "" {
		return 1024 + 6*uint64(len(s.info.Record))
	}
	return 1024 + 1024 + 6*uint64(len(s.info.Record)+len(s.rights))
}

func (t *twin) sessionCharge(id SessionID) uint64 {
	sum := t.session(id).ownCharge()
	for _, e := range t.entries {
		if e.session == id {
			sum += t.requestCharge(e)
		}
	}
	return sum
}

func (t *twin) groupCharge() (sum uint64) {
	for _, s := range t.sessions {
		sum += s.ownCharge()
	}
	var keys []string
	for _, e := range t.entries {
		sum += 352*uint64(len(e.keys)) + restOf(e)
		keys = append(keys, e.keys...)
	}
	for key, d := range t.data {
		sum += 288 + 6*uint64(len(d.Value))
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		sum += 256 + 6*uint64(len(key))
	}
	return sum
}

func (t *twin) refuseGrowth(more uint64, r *Result) bool {
	budget := t.charter.Limits.GroupBytes
	if t.groupCharge()+more <= budget-budget/16 {
		return false
	}
	r.Code, r.Budget = OverGroupBudget, budget
	return true
}

func (t *twin) refuseForSession(id SessionID, more uint64, r *Result) bool {
	if t.sessionCharge(id)+more <= t.charter.Limits.SessionBytes {
		return false
	}
	r.Code, r.Budget = OverSessionBudget, t.charter.Limits.SessionBytes
	return true
}

func (t *twin) refuseRequest(id SessionID, more uint64, r *Result) bool {
	return t.refuseForSession(id, more, r) || t.refuseGrowth(more, r)
}

func (t *twin) overTakingUp(s *twinSession, e twinEntry, c Command, r *Result) bool {
	now := e
	now.owner, now.seq, now.delay = c.Owner, 0, e.delay+c.Delay // the charge depends only on whether there is a delay
	if len(c.Value) > 0 {
		now.value = c.Value
	}
	more, was := t.requestCharge(now), uint64(0)
	if e.session == s.id {
		was = t.requestCharge(e)
	}
	if t.refuseForSession(s.id, max(more, was)-was, r) {
		return true
	}
	return restOf(now) > restOf(e) && t.refuseGrowth(restOf(now)-restOf(e), r)
}

func (t *twin) overValue(e, after twinEntry, r *Result) bool {
	more := restOf(after) - min(restOf(e), restOf(after))
	return more > 0 && t.refuseRequest(e.session, more, r)
}

func (t *twin) overPut(c Command, r *Result) bool {
	before := t.groupCharge()
	was, there := t.data[c.Key]
	t.data[c.Key] = Data{Value: c.Value}
	after := t.groupCharge()
	delete(t.data, c.Key)
	if there {
		t.data[c.Key] = was
	}
	return after > before && t.refuseGrowth(after-before, r)
}
