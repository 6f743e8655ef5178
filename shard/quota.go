package shard

import (
	"cmp"
	"slices"

	"github.com/mortise-lock/mortise"
)

// member is one live call of Run.
type member struct {
	id       string
	weight   int
	count    int           // of the shards that it runs
	token    mortise.Token // of its presence: a member that joined earlier has a lower one
	instance string        // mortise.Config.Name
}

// quotas returns how many of count shards each member should own, by its id. They depend only on
// the members, so all instances agree on them.
//
// The method is that of Webster (Sainte-Lague), which is used for seats in parliaments: each shard
// goes to the member with the highest quotient of its weight and 2n+1, where n is the number that
// it has so far. If a member joins, the quota of no other member rises, and if one leaves, none
// falls. So only those shards move that must.
func quotas(members []member, count int) map[string]int {
	all := slices.SortedFunc(slices.Values(members), func(a, b member) int {
		return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.id, b.id))
	})
	has := make([]int, len(all))
	for range count {
		best := -1
		for i, m := range all {
			// The quotients are compared without a division. Earlier members win a tie.
			if m.weight > 0 && (best < 0 || m.weight*(2*has[best]+1) > all[best].weight*(2*has[i]+1)) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		has[best]++
	}
	quota := make(map[string]int, len(all))
	for i, m := range all {
		quota[m.id] = has[i]
	}
	return quota
}
