package voters

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"time"
)

const lossMemory = 2 * time.Minute

// loss records that a replica was lost. It contains the name of the instance, since the next
// incarnation has another ID.
type loss struct {
	name string
	at   time.Duration
}

// absence is a period without contact to a replica. It counts as at most one loss.
type absence struct {
	id      nodeid.ReplicaID
	since   time.Duration
	counted bool
}

// count updates the losses for Registered.Lost. It adds at most one loss in each absence. A
// replica is lost if it is dead by rule 11, or if it returns after a silence as long as that
// rule's limit. Leavers are not counted.
func (s *Reconciler) count() {
	now, seen := s.view.Now, look(s.view)
	s.losses = slices.DeleteFunc(s.losses, func(l loss) bool { return now-l.at >= lossMemory })
	var absences []absence
	for _, m := range slices.Concat(seen.voters, seen.learners) {
		if m.self {
			continue
		}
		i := slices.IndexFunc(s.absences, func(a absence) bool { return a.id == m.ID })
		a := absence{id: m.ID, since: now - m.SilentFor}
		if i >= 0 {
			a = s.absences[i]
		}
		lost := m.dead || m.Active && now-m.SilentFor-a.since >= seen.silence()
		if lost && !a.counted && m.info.Name != "" && !m.info.Leaving {
			s.losses = append(s.losses, loss{name: m.info.Name, at: now})
			a.counted = true
		}
		if !m.Active {
			absences = append(absences, a)
		}
	}
	s.absences = absences
}

func (s *Reconciler) lost(name string) int {
	n := 0
	for _, l := range s.losses {
		if l.name == name {
			n++
		}
	}
	return n
}
