package shard

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mortise-lock/mortise"
)

func random(r *rand.Rand) (members []member, count int) {
	for i := range 1 + r.IntN(8) {
		weight := 1
		if r.IntN(2) == 0 {
			weight += r.IntN(5)
		}
		members = append(members, member{id: fmt.Sprint("m", i), weight: weight, token: mortise.Token(100 + i)})
	}
	return members, r.IntN(200)
}

func TestQuotas(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		members, count := random(r)
		total, equal := 0, true
		for _, m := range members {
			total += m.weight
			equal = equal && m.weight == members[0].weight
		}
		quota, sum := quotas(members, count), 0
		for _, m := range members {
			fair := float64(count) * float64(m.weight) / float64(total)
			if off := math.Abs(float64(quota[m.id]) - fair); equal && off >= 1 || off > 1.5 {
				t.Fatalf("seed %d: %s of %+v gets %d of %d, fair is %v", seed, m.id, members, quota[m.id], count, fair)
			}
			sum += quota[m.id]
		}
		if sum != count {
			t.Fatalf("seed %d: %d of %d are given", seed, sum, count)
		}
		shuffled := append([]member(nil), members...)
		r.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		if !maps.Equal(quota, quotas(shuffled, count)) {
			t.Fatalf("seed %d: the order of the members matters", seed)
		}
		// Without one of the members, the quota of no other one is lower.
		gone := r.IntN(len(members))
		left := append(append([]member(nil), members[:gone]...), members[gone+1:]...)
		for id, n := range quotas(left, count) {
			if n < quota[id] {
				t.Fatalf("seed %d: without %s, %s gets %d instead of %d", seed, members[gone].id, id, n, quota[id])
			}
		}
	}
}

func TestQuotasOfNone(t *testing.T) {
	if q := quotas(nil, 5); len(q) != 0 {
		t.Error(q)
	}
	if q := quotas([]member{{id: "a", token: 1}, {id: "b", weight: 1, token: 2}}, 5); q["a"] != 0 || q["b"] != 5 {
		t.Error(q)
	}
}
