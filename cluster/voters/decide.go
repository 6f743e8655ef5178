package voters

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// poll is the time until the next evaluation if a step waits for a replica's log, because
	// progress of a log causes no event.
	poll     = 100 * time.Millisecond
	maxNamed = 10
	// again is the time until the next evaluation if a step has had no effect.
	again    = time.Second
	maxNotes = 3
)

// decide returns the next step, and reports whether a step is due, even if none is possible now.
func (s *survey) decide() (Step, bool) {
	pending := s.v.Pending || len(s.v.Config.Outgoing) > 0
	switch {
	case s.self == nil:
		return s.none("this replica has no vote and does not lead"), true // a step is due, so Ready must wait
	case pending:
		return s.none("a change of voters is in flight"), true
	case !majority(s.voters):
		return s.none(fmt.Sprintf("only %d of %d voters are in contact: no change can be committed", active(s.voters),
			len(s.voters))), true
	case s.target == 0:
		return s.none(s.noHeir()), false
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
	if waits := s.waitsFor(); waits != "" {
		return s.none(waits), true
	}
	if len(s.resting) > 0 && s.wanted < s.maxVoters() {
		return s.none(strings.Join(s.resting, ", ") + " did not start a replica and will be asked again"), true
	}
	why := fmt.Sprintf("%d of %d eligible instances vote", len(s.voters), s.eligible)
	if len(s.voters) == s.target {
		why += fmt.Sprintf(", the largest odd number up to Voters, %d", s.maxVoters())
	}
	if s.barred != "" {
		why += "; " + s.barred
	}
	if s.surplus > 0 {
		why += fmt.Sprintf("; %d more get no vote because Replicas is %d", s.surplus, s.v.Settings.Replicas)
	}
	for _, text := range s.notes {
		why += "; " + text
	}
	return s.none(why), false
}

func (s *survey) none(why string) Step { return Step{Why: why, Next: s.next()} }

func (s *survey) noHeir() string {
	names := slices.Sorted(slices.Values(s.v.Settings.Founders))
	if len(names) == 0 {
		return "no instance that stays could vote"
	}
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "no instance that stays is one of the Founders (" + text + "), so none can vote"
}

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
		step := s.none("the leader leaves and waits for a voter that has all of its log")
		step.Next = poll
		return step, true
	}
	to := slices.MinFunc(ready, func(a, b *member) int {
		return cmp.Or(cmp.Compare(b.info.Rules, a.info.Rules), cmp.Compare(b.info.Build, a.info.Build),
			cmp.Compare(a.info.Lost, b.info.Lost), cmp.Compare(b.info.Order, a.info.Order), cmp.Compare(a.ID, b.ID))
	})
	return Step{Kind: Transfer, ID: to.ID, Instance: to.Instance, Next: again,
		Why: "the leader leaves: it hands the lead to " + to.label() + " first"}, true
}

func (s *survey) succeeds(list []*member) bool {
	return slices.ContainsFunc(list, func(m *member) bool { return !m.self && m.fit() && m.Active })
}

func active(list []*member) int {
	return len(where(list, func(m *member) bool { return m.Active }))
}

// waitsFor returns a text about a wanted change that is not possible yet, or "".
func (s *survey) waitsFor() string {
	var silent, behind, going []string
	for _, m := range slices.Concat(s.voters, s.learners) {
		switch {
		case m.voter && !m.fit():
			going = append(going, m.label())
		case !m.Active:
			silent = append(silent, m.label())
		case !m.voter && !m.promotable():
			behind = append(behind, m.label())
		}
	}
	switch {
	case len(going) > 0:
		return strings.Join(going, ", ") + " cannot be replaced yet: waiting for a replacement"
	case len(silent) > 0:
		return "no contact with " + strings.Join(silent, ", ")
	case len(behind) > 0:
		return "waiting until " + strings.Join(behind, ", ") + " has caught up and has a session"
	case len(s.voters) != s.target || len(s.learners) < s.wanted-s.target:
		return fmt.Sprintf("waiting for %d replicas, %d of them voters", s.wanted, s.target)
	}
	return ""
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
