package history

import (
	"cmp"
	"slices"
)

// joining merges the accounts that the voters of a group have recorded.
type joining struct{ *evidence }

func (j joining) joinAccounts() error {
	// A group without a hold was probably never founded.
	j.groups = slices.DeleteFunc(j.groups, func(a *account) bool { return a.silent() })
	slices.SortFunc(j.groups, func(a, b *account) int {
		return cmp.Or(cmp.Compare(a.first, b.first),
			cmp.Compare(a.group, b.group))
	})
	for _, a := range j.groups {
		slices.SortStableFunc(a.runs, func(x, y run) int { return cmp.Compare(x.from, y.from) })
		a.covers = a.first
		for _, r := range a.runs {
			if r.from > a.covers {
				return unknown("no voter recorded group %x between revisions %d and %d: is a file missing?",
					uint64(a.group), a.covers, r.from)
			}
			a.covers = max(a.covers, r.to)
		}
		runs := make([][]step, 0, len(a.runs))
		for _, r := range a.runs {
			runs = append(runs, r.steps)
		}
		for len(runs) > 1 { // merge in pairs, so that many short runs cost no more than few long runs
			half := runs[:0]
			for i := 0; i < len(runs); i += 2 {
				if i+1 == len(runs) {
					half = append(half, runs[i])
					continue
				}
				both, err := j.join(runs[i], runs[i+1])
				if err != nil {
					return err
				}
				half = append(half, both)
			}
			runs = half
		}
		if len(runs) > 0 {
			a.steps = runs[0]
		}
	}
	return nil
}

func (j joining) join(a, b []step) ([]step, error) {
	if len(a) == 0 || len(b) == 0 {
		return append(a, b...), nil
	}
	both := make([]step, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].compare(b[0]); {
		case c < 0:
			both, a = append(both, a[0]), a[1:]
		case c > 0:
			both, b = append(both, b[0]), b[1:]
		default:
			x, y := &j.events[a[0].event], &j.events[b[0].event]
			if x.Kind != y.Kind || !x.alike(y) || x.Token != y.Token || x.reserved() != y.reserved() || x.Place != y.Place ||
				x.Resumes != y.Resumes || x.Session != y.Session || x.Number != y.Number || x.How != y.How {
				return nil, j.broken(Agree, []int32{a[0].event, b[0].event},
					"two voters do not agree on entry %d of group %x", x.Index, uint64(x.Group))
			}
			s := a[0]
			if s.at = min(s.at, b[0].at); y.Last != 0 {
				s.event = b[0].event
			}
			both, a, b = append(both, s), a[1:], b[1:]
		}
	}
	return append(append(both, a...), b...), nil
}
