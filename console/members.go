package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

type roster struct {
	Shown int     `json:"shown"`
	Total int     `json:"total"`                 // the leader's last count; 0 means unknown
	After string  `json:"after,omitempty"`       // empty for the first page
	Next  string  `json:"next,omitempty"`        // ?after= of the next page; empty on the last page
	Old   bool    `json:"old,omitempty"`         // the leader has not answered, and an earlier first page is shown
	Age   float64 `json:"age_seconds,omitempty"` // age of the page if it is old; else 0
}

type zone struct {
	Name    string   `json:"zone"`
	Members []member `json:"members"`
}

type member struct {
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	Address string    `json:"address"`
	Role    string    `json:"role"` // "leader", "voter", "learner", "member" or "guest"
	For     string    `json:"for,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Leaving bool      `json:"leaving,omitempty"`
	Self    bool      `json:"self,omitempty"`
	Version string    `json:"version,omitempty"`        // of mortise; "" if not reported
	Console string    `json:"console,omitempty"`        // URL of its console; "" if not known
	Session string    `json:"session,omitempty"`        // ID of its session; "" if not known
	Missing bool      `json:"missing,omitempty"`        // the member has a replica, but is silent or not seen by gossip
	Silent  float64   `json:"silent_seconds,omitempty"` // by the leader's clock; 0 means not known
	AtLeast bool      `json:"at_least,omitempty"`       // the silence may be longer than Silent

	Lease *lease `json:"-"` // its session, if the page shows it in the table; or nil
}

func zonesOf(s mortise.Status, h *mortise.Health, page []mortise.Member) []zone {
	members := map[string][]member{}
	for _, v := range s.Voters {
		one := memberOf(s, v)
		if at := slices.IndexFunc(page, func(m mortise.Member) bool { return m.Instance == v.Instance }); at >= 0 {
			one = memberOf(s, page[at])
			one.ID, v.Zone = v.Instance, page[at].Zone
		}
		switch {
		case !v.Votes:
			one.Role = "learner"
		case s.Leader != "" && (v.Name == s.Leader || v.Instance == s.Leader):
			one.Role = "leader"
		default:
			one.Role = "voter"
		}
		one.Missing = h == nil && !v.Seen && !one.Self
		if h != nil {
			for _, silent := range h.Missing {
				if silent.Instance == v.Instance {
					one.Name, one.Missing, one.Silent = cmp.Or(one.Name, silent.Name), true, inSeconds(silent.Silent)
					one.AtLeast = !silent.Seen
				}
			}
		}
		members[v.Zone] = append(members[v.Zone], one)
	}
	for _, m := range page {
		if !slices.ContainsFunc(s.Voters, func(v mortise.Member) bool { return v.Instance == m.Instance }) {
			members[m.Zone] = append(members[m.Zone], memberOf(s, m))
		}
	}
	zones := make([]zone, 0, len(members))
	for name, all := range members {
		slices.SortStableFunc(all, func(a, b member) int {
			return cmp.Or(rank(a.Role)-rank(b.Role), strings.Compare(a.Name, b.Name))
		})
		zones = append(zones, zone{Name: name, Members: all})
	}
	slices.SortFunc(zones, func(a, b zone) int { return cmp.Compare(a.Name, b.Name) })
	return zones
}

func memberOf(s mortise.Status, m mortise.Member) member {
	one := member{
		Name: m.Name, ID: m.Instance, Address: m.Address, Role: "member", For: m.For, Since: m.Since,
		Leaving: m.Leaving, Self: m.Instance == s.Instance, Version: m.Version, Session: m.Session,
	}
	if m.Tier == mortise.TierGuest {
		one.Role = "guest"
	}
	return one
}

func rank(role string) int {
	return slices.Index([]string{"leader", "voter", "learner", "member", "guest"}, role)
}
