package voters

import (
	"cmp"
	"slices"
	"time"
)

const (
	// poll is the time until the next evaluation if a step waits for a replica's log, because
	// progress of a log causes no event.
	poll = 100 * time.Millisecond
	// again is the time until the next evaluation if a step has had no effect.
	again    = time.Second
	maxNotes = 3
)

// decide returns the next step, and reports whether a step is due, even if none is possible now.
func (s *survey) decide() (Step, bool) {
	pending := s.v.Pending || len(s.v.Config.Outgoing) > 0
	switch {
	case s.self == nil:
		return s.none(leadsWithoutVote), true // a step is due, so Ready must wait
	case pending:
		return s.none(changeInFlight), true
	case !majority(s.voters):
		return s.none(noMajority{active(s.voters), len(s.voters)}), true
	case s.target == 0:
		return s.none(noneCouldVote{s.v.Settings.Founders}), false
	}
	if step, ok := s.handOver(); ok {
		return step, true
	}
	if best := s.choose(); best != nil && (s.leads() || s.succeeds(best)) {
		return s.change(best), true
	}
	if best := s.swap(); best != nil {
		return s.change(best), true
	}
	coming, due := s.bringIn()
	if coming.Kind != None {
		return coming, true
	}
	if step := s.change(s.voters); len(step.Remove) > 0 {
		return step, true
	}
	if due {
		return coming, true
	}
	if waits := s.waitsFor(); waits != nil {
		what, ok := waits.(awaits)
		s.onlySilent = ok && len(what.going) == 0 && len(what.behind) == 0
		return s.none(waits), true
	}
	if len(s.resting) > 0 && s.wanted < s.maxVoters() {
		return s.none(rests{s.resting}), true
	}
	done := asWanted{voters: len(s.voters), eligible: s.eligible, barred: s.barred, surplus: s.surplus,
		replicas: s.v.Settings.Replicas, notes: s.notes}
	if len(s.voters) == s.target {
		done.most = s.maxVoters()
	}
	return s.none(done), false
}

func (s *survey) none(why reason) Step { return Step{Why: why.String(), Next: s.next()} }

// handOver applies rule 12 if a voter can take over the leadership. The voter with the newest build
// takes it over, so that a rolling update does not move the lead back to a build that is about to
// leave, too. If builds are equal, the instance that has registered last is more likely the updated
// one.
func (s *survey) handOver() (Step, bool) {
	if s.leads() {
		return Step{}, false
	}
	heirs := where(s.voters, func(m *member) bool { return !m.self && m.fit() && m.Active })
	if len(heirs) == 0 {
		return Step{}, false
	}
	ready := where(heirs, func(m *member) bool { return m.Full })
	if len(ready) == 0 {
		step := s.none(leaderHasNoHeir)
		step.Next = poll
		return step, true
	}
	to := slices.MinFunc(ready, func(a, b *member) int {
		return cmp.Or(cmp.Compare(b.info.Rules, a.info.Rules), cmp.Compare(b.info.Build, a.info.Build),
			cmp.Compare(a.info.Lost, b.info.Lost), cmp.Compare(b.info.Order, a.info.Order), cmp.Compare(a.ID, b.ID))
	})
	return Step{Kind: Transfer, ID: to.ID, Instance: to.Instance, Next: again, Why: handsOver{to}.String()}, true
}

func (s *survey) succeeds(list []*member) bool {
	return slices.ContainsFunc(list, func(m *member) bool { return !m.self && m.fit() && m.Active })
}

func active(list []*member) int {
	return len(where(list, func(m *member) bool { return m.Active }))
}

// waitsFor returns which wanted change is not possible yet, or nil.
func (s *survey) waitsFor() reason {
	r := awaits{last: s.v.Last}
	for _, m := range slices.Concat(s.voters, s.learners) {
		switch {
		case m.voter && !m.fit():
			r.going = append(r.going, m)
		case !m.Active:
			r.silent = append(r.silent, m)
		case !m.voter && !m.promotable():
			r.behind = append(r.behind, m)
		}
	}
	switch {
	case len(r.going)+len(r.silent)+len(r.behind) > 0:
		return r
	case len(s.voters) != s.target || len(s.learners) < s.wanted-s.target:
		return awaitsReplicas{s.wanted, s.target}
	}
	return nil
}

// irreplaceable reports whether the replicas keep their data, and no instance runs without a vote
// that could take the place of a silent voter. An instance with the name of a voter counts, since
// it may have lost that voter's directory.
func (s *survey) irreplaceable() bool {
	if !s.v.Settings.Durable {
		return false
	}
	return !slices.ContainsFunc(s.records(), func(r Registered) bool {
		votes := slices.ContainsFunc(s.voters, func(m *member) bool { return m.Instance == r.Instance })
		return r.Session && r.Reachable && !r.Leaving && s.founder(r.Name) && !votes
	})
}

// next returns the time until the result of Reconcile may change without an event.
func (s *survey) next() time.Duration {
	var least time.Duration
	at := func(d time.Duration) {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	for _, m := range slices.Concat(s.voters, s.learners) {
		if !m.Active && !m.dead {
			at(s.silence() - m.SilentFor)
		}
		if !m.voter && m.fit() && m.Active && !m.promotable() {
			at(poll)
		}
	}
	for _, p := range s.v.Prepared {
		if p.State == Asked {
			at(p.Sent + again - s.v.Now)
			at(p.Since + patience - s.v.Now)
			at(p.Since + preparing - s.v.Now)
			at(p.Since + preparing + patience - s.v.Now)
			continue
		}
		at(p.Since + patience - s.v.Now)
		at(p.Since + 2*patience - s.v.Now)
	}
	return least
}
