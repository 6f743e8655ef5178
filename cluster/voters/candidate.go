package voters

import (
	"cmp"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

type candidate struct {
	info     Registered
	prepared Prepared // the newest Prepared of this term that is still valid
	stage    stage
	again    bool // the question is to be repeated
	replaces bool // a dead or leaving replica with the candidate's name is in the configuration
}

type stage uint8

const (
	running stage = iota // its replica runs and can be added
	asked
	unasked
	slow // asked for longer than patience; another instance is asked first
)

const (
	// patience is the pause after which an instance is asked again that refused, or that did not
	// answer for the time preparing. If an instance does not answer for this long, another one is
	// asked, too.
	patience = 5 * time.Second
	// preparing is how long an instance that has not answered a Prepare counts as present. The
	// answer may need several syncs of a slow disk. Meanwhile the question is repeated with the same
	// ID, so that a late answer is not lost.
	preparing = 30 * time.Second
	// restless is the number of losses after which an instance normally gets no replica.
	restless = 3
)

// count finds the candidates and computes how many replicas should vote.
func (s *survey) count(records []Registered) {
	var list []candidate
	for _, r := range records {
		if c, ok := s.candidate(r); ok {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Or(last(a.wild())-last(b.wild()), a.compare(b, 0, 0)) })
	open := s.unrivalled(list)
	staying := len(where(s.voters, (*member).fit)) + len(where(s.learners, (*member).fit))
	floor := odd(min(s.maxVoters(), staying+len(open)))/2 + 1 // a majority of all possible replicas
	for _, c := range open {
		if c.wild() && odd(min(s.maxVoters(), staying+len(s.candidates))) >= floor {
			s.barred = lostOften{c.info.Name, c.info.Lost}
			continue
		}
		s.candidates = append(s.candidates, c)
	}
	s.eligible = s.seat(staying)
	s.wanted = min(s.maxVoters(), s.eligible)
	s.target = odd(s.wanted)
}

// seat drops the candidates beyond Settings.Replicas, so that a surplus instance gets no vote, and
// returns how many instances may have a replica. Voters that may stay are never too many. The
// candidates that have registered first remain. A candidate with the name of a lost replica comes
// before these, since it is a restarted instance. An instance that was lost often comes last.
func (s *survey) seat(staying int) (eligible int) {
	all := staying + len(s.candidates)
	if s.v.Settings.Replicas <= 0 {
		return all
	}
	places := max(s.v.Settings.Replicas, len(where(s.voters, (*member).fit)))
	if all <= places {
		return all
	}
	slices.SortStableFunc(s.candidates, func(a, b candidate) int {
		return cmp.Or(last(a.wild())-last(b.wild()), last(b.replaces)-last(a.replaces),
			cmp.Compare(a.info.Order, b.info.Order))
	})
	free := min(max(places-staying, 0), len(s.candidates))
	s.surplus = len(s.candidates) - free
	s.candidates = s.candidates[:free]
	return places
}

func (s *survey) unrivalled(list []candidate) []candidate {
	taken := map[string]bool{}
	return slices.DeleteFunc(list, func(c candidate) bool {
		again := c.info.Name != "" && taken[c.info.Name]
		taken[c.info.Name] = true
		return again
	})
}

// wild reports whether the candidate was lost often. Such a candidate gets a vote only if otherwise
// there would be too few voters.
func (c candidate) wild() bool { return c.info.Lost >= restless }

func (s *survey) maxVoters() int { return max(odd(s.v.Settings.Voters), 1) }

func odd(n int) int { return max(n-(n+1)%2, 0) }

// candidate reports whether an instance could get a replica now (rules 8 and 9), and returns its
// stage.
func (s *survey) candidate(r Registered) (candidate, bool) {
	c := candidate{info: r, stage: unasked}
	if !r.Session || !r.Reachable || r.Leaving || !s.founder(r.Name) {
		return c, false
	}
	if r.Rules > 0 && r.Rules < s.v.Settings.Rules {
		s.note(oldBuild{r, s.v.Settings.Rules})
		return c, false // its replica would end with the leader's snapshot
	}
	for _, list := range [...][]*member{s.voters, s.learners} {
		for _, m := range list {
			if s.rivals(r, m.info, r.Instance, m.Instance) {
				if m.fit() {
					if r.Instance != m.Instance && m.Active && m.voter {
						s.note(sameName{r, m})
					}
					return c, false
				}
				c.replaces = true
			}
		}
	}
	for _, p := range s.v.Prepared {
		if p.Instance == r.Instance && (p.Since > c.prepared.Since || p.Since == c.prepared.Since &&
			p.ID > c.prepared.ID) {
			c.prepared = p
		}
	}
	if p := c.prepared; p.ID != 0 {
		age := s.v.Now - p.Since
		switch {
		case p.State == Running && !s.inConfig(p.ID):
			c.stage = running
		case p.State == Asked && age < preparing:
			c.stage, c.again = asked, s.v.Now-p.Sent >= again
			if age >= patience {
				c.stage = slow
			}
		case p.State == Asked && age < preparing+patience, p.State != Asked && age < patience:
			s.resting = append(s.resting, r.Name)
			return c, false
		}
	}
	return c, true
}

func (s *survey) note(why reason) {
	if len(s.notes) < maxNotes {
		s.notes = append(s.notes, why)
	}
}

func (s *survey) inConfig(id nodeid.ReplicaID) bool {
	return slices.Contains(s.v.Config.Voters, id) || slices.Contains(s.v.Config.Learners, id)
}

// compare orders candidates by stage. Within a stage, candidates without a dead or leaving replica
// of the same name come first, then candidates with fewer losses, then candidates in the emptier
// zone.
func (c candidate) compare(o candidate, load, otherLoad int) int {
	return cmp.Or(cmp.Compare(c.stage, o.stage), last(c.replaces)-last(o.replaces), cmp.Compare(c.info.Lost, o.info.Lost),
		load-otherLoad, nodeid.Compare(c.info.Instance, o.info.Instance))
}

func last(b bool) int {
	if b {
		return 1
	}
	return 0
}
