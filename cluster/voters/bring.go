package voters

import "slices"

// bringIn asks instances for the missing replicas and adds the replicas that run (rule 9). It asks
// all needed instances before it adds a replica.
func (s *survey) bringIn() (Step, bool) {
	have := slices.Concat(where(s.voters, (*member).fit), where(s.learners, (*member).fit))
	ready, waiting := (*candidate)(nil), false
	left := slices.Clone(s.candidates)
	for n := s.wanted - len(have); n > 0 && len(left) > 0; n-- {
		i := s.preferred(left, have)
		c := left[i]
		left = slices.Delete(left, i, i+1)
		have = append(have, &member{info: c.info, known: true})
		switch {
		case c.stage == unasked || c.again:
			if step, ok := s.prepare(c, tooFewReplicas{c.info.Name, len(have) - 1, s.wanted}); ok {
				return step, true
			}
			waiting = waiting || c.stage != unasked
		case c.stage != running:
			waiting = true
		case ready == nil:
			ready = &c
		}
	}
	if ready == nil && !waiting && s.wanted <= len(have) {
		return s.spread()
	}
	if ready != nil {
		return s.add(*ready), true
	}
	if waiting {
		return s.none(startsReplica), true
	}
	return Step{}, false
}

func (s *survey) preferred(list []candidate, have []*member) int {
	best := 0
	for i, c := range list {
		if c.compare(list[best], load(have, c.info.Zone), load(have, list[best].info.Zone)) < 0 {
			best = i
		}
	}
	return best
}

// spread adds one replica more than wanted if the replica could replace a voter in an overfull
// zone.
func (s *survey) spread() (Step, bool) {
	if slices.ContainsFunc(s.learners, s.spreads) {
		return Step{}, false // a learner for this purpose exists already
	}
	for _, c := range s.candidates {
		out := s.displaced(c.info, c.info.Instance)
		switch {
		case out == nil:
		case c.stage == running:
			return s.add(c), true
		case c.stage != unasked && !c.again:
			return s.none(startsReplica), true
		default:
			return s.prepare(c, fullZone{c.info.Name, out})
		}
	}
	return Step{}, false
}

func (s *survey) spreads(l *member) bool {
	return l.fit() && s.displaced(l.info, l.Instance) != nil
}

func (s *survey) prepare(c candidate, why reason) (Step, bool) {
	id := c.prepared.ID
	if id == 0 || c.prepared.State != Asked || s.inConfig(id) {
		id = s.v.Fresh
		used := func(p Prepared) bool { return p.ID == id }
		if id == 0 || s.inConfig(id) || slices.ContainsFunc(s.v.Prepared, used) {
			return Step{}, false
		}
	}
	return Step{Kind: Prepare, ID: id, Instance: c.info.Instance, Next: again, Why: why.String()}, true
}

func (s *survey) add(c candidate) Step {
	return Step{Kind: AddLearner, ID: c.prepared.ID, Instance: c.info.Instance, Next: again,
		Why: replicaRuns{c.info.Name}.String()}
}
