package console

import (
	"cmp"
	"slices"

	"github.com/mortise-lock/mortise"
)

const maxLease = 12 // sessions that the page lists

type lease struct {
	Session string  `json:"session"`
	Holder  string  `json:"holder"`
	Own     bool    `json:"own,omitempty"` // opened by Node.NewSession or a guest
	TTL     float64 `json:"ttl_seconds"`
	Left    float64 `json:"left_seconds"` // 0 means unknown
	Leaving bool    `json:"leaving,omitempty"`
	Expired bool    `json:"expired,omitempty"`
}

// leasesOf returns the sessions with the smallest remaining part of their TTL, and the number of
// the other sessions.
func leasesOf(all []mortise.SessionInfo) (leases []lease, others int) {
	all = slices.Clone(all)
	part := func(s mortise.SessionInfo) float64 { return s.Left.Seconds() / max(s.TTL.Seconds(), 1e-9) }
	slices.SortStableFunc(all, func(a, b mortise.SessionInfo) int { return cmp.Compare(part(a), part(b)) })
	leases = []lease{}
	for _, s := range all[:min(len(all), maxLease)] {
		leases = append(leases, lease{
			Session: s.Session, Holder: s.Name, Own: s.Instance == "", TTL: inSeconds(s.TTL), Left: inSeconds(s.Left),
			Leaving: s.Leaving, Expired: s.Expired,
		})
	}
	return leases, len(all) - len(leases)
}
