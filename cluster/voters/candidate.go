package voters

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// candidate is an instance that could get a replica.
type candidate struct {
	who      Registered
	prepared Prepared // the newest of this term that still means something
	stage    stage
	replaces bool // a replica of its own that is dead or goes is still in the configuration
}

// stage is how far a candidate has come.
type stage uint8

const (
	running stage = iota // it can be added
	asked                // its answer is awaited
	unasked
)

const (
	// patience is how long the answer to Prepare is waited for, and how long one that refused or
	// did not answer is then left alone.
	patience = 5 * time.Second
	// restless is from how many losses on an instance is not brought in.
	restless = 3
)

// count finds the candidates and works out how many should vote.
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
	floor := odd(min(s.most(), staying+len(open)))/2 + 1 // a majority of those who could be there
	for _, c := range open {
		if c.wild() && odd(min(s.most(), staying+len(s.candidates))) >= floor {
			s.barred = fmt.Sprintf("%q was lost %d times in two minutes and is not brought in until it is steady",
				c.who.Name, c.who.Lost)
			continue
		}
		s.candidates = append(s.candidates, c)
	}
	s.eligible = staying + len(s.candidates)
	s.wanted = min(s.most(), s.eligible)
	s.target = odd(s.wanted)
}

// unrivalled leaves out each candidate that is a rival of one before it. Instances are in the list
// once, so that only a name can stand in it twice.
func (s *survey) unrivalled(list []candidate) []candidate {
	taken := map[string]bool{}
	return slices.DeleteFunc(list, func(c candidate) bool {
		again := c.who.Name != "" && taken[c.who.Name]
		taken[c.who.Name] = true
		return again
	})
}

// wild reports whether the candidate is better left out. Where too few would vote without it, it is
// not: two restarts of all in a row make everybody restless, and then one vote is a greater danger
// than a change.
func (c candidate) wild() bool { return c.who.Lost >= restless }

// most is how many voters the settings allow.
func (s *survey) most() int { return max(odd(s.v.Settings.Voters), 1) }

// odd returns the largest odd number that is not above n, or 0.
func odd(n int) int { return max(n-(n+1)%2, 0) }

// candidate reports whether an instance could get a replica now (rules 8 and 9), and how far that
// has come.
func (s *survey) candidate(r Registered) (candidate, bool) {
	c := candidate{who: r, stage: unasked}
	if !r.Session || !r.Reachable || r.Leaving || !s.founder(r.Name) {
		return c, false
	}
	for _, list := range [...][]*member{s.voters, s.learners} {
		for _, m := range list {
			if s.rivals(r, m.who, r.Instance, m.Instance) {
				if m.fit() {
					if r.Instance != m.Instance && m.Active && m.voter && len(s.namesakes) < namesakesMax {
						s.namesakes = append(s.namesakes,
							fmt.Sprintf("%q at %s gets no vote beside %s at %s, which has its name: give each "+
								"instance a Name of its own", r.Name, r.Addr, m.label(), m.Addr))
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
		case p.State == Asked && age < patience:
			c.stage = asked
		case p.State == Asked && age < 2*patience, p.State != Asked && age < patience:
			s.resting = append(s.resting, strconv.Quote(r.Name))
			return c, false
		}
	}
	return c, true
}

func (s *survey) inConfig(id ID) bool {
	return slices.Contains(s.v.Config.Voters, id) || slices.Contains(s.v.Config.Learners, id)
}

// compare orders candidates: what is begun goes on; who lost a replica before, or was lost itself,
// comes later; then the emptier zone.
func (c candidate) compare(o candidate, load, otherLoad int) int {
	return cmp.Or(cmp.Compare(c.stage, o.stage), last(c.replaces)-last(o.replaces), cmp.Compare(c.who.Lost, o.who.Lost),
		load-otherLoad, nodeid.Compare(c.who.Instance, o.who.Instance))
}

// last puts those for whom it holds behind the others.
func last(b bool) int {
	if b {
		return 1
	}
	return 0
}
