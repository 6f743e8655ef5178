package console

import (
	"slices"
	"sync"

	"github.com/mortise-lock/mortise"
)

// met remembers who the voters are, for when gossip does not see them any more: a person looks for a name, not for an address.
type met struct {
	mu     sync.Mutex // guards voters; never held across a wait
	voters map[string]mortise.Member
}

// names fills in names and zones of voters that are not seen now and were before.
func (m *met) names(s mortise.Status) mortise.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Voters = slices.Clone(s.Voters)
	now := map[string]mortise.Member{}
	for i, v := range s.Voters {
		one := m.voters[v.Instance]
		if at := slices.IndexFunc(s.Members, func(o mortise.Member) bool { return o.Instance == v.Instance }); at >= 0 {
			one = s.Members[at]
		}
		if one.Instance == "" {
			continue
		}
		now[v.Instance] = one
		s.Voters[i].Name, s.Voters[i].Zone = one.Name, one.Zone
	}
	m.voters = now // only of those who are voters: it does not grow
	return s
}
