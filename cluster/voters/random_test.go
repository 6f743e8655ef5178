package voters

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

func oneIn(rng *rand.Rand, n int) bool { return rng.IntN(n) == 0 }

func randomView(rng *rand.Rand) View {
	v := View{Now: time.Hour, Fresh: 900, Settings: Settings{Voters: []int{1, 3, 3, 3, 5, 5, 7, 4}[rng.IntN(8)],
		Durable: oneIn(rng, 4)}}
	if oneIn(rng, 3) {
		v.Settings.Replicas = 1 + rng.IntN(7)
	}
	n := 1 + rng.IntN(7)
	healthy := 1 + rng.IntN(6) // higher means fewer faults
	for i := range n {
		v.Registered = append(v.Registered, randomInstance(rng, i, healthy))
	}
	if oneIn(rng, 4) {
		for i := range 1 + rng.IntN(n) {
			v.Settings.Replicas = 0
			v.Settings.Founders = append(v.Settings.Founders, fmt.Sprint("n", i))
		}
	}
	size := []int{1, 1, 2, 3, 3, 3, 3, 5, 5, 4, 6, 7}[rng.IntN(12)]
	for i := range size {
		id := nodeid.ReplicaID(10 + i)
		v.Config.Voters = append(v.Config.Voters, id)
		v.Replicas = append(v.Replicas, randomReplica(rng, id, nodeidtest.ID(uint64(100+i)), healthy))
	}
	v.Self = v.Config.Voters[rng.IntN(size)]
	for i := range rng.IntN(4) {
		id, who := nodeid.ReplicaID(20+i), nodeidtest.ID(uint64(100+size+i))
		if oneIn(rng, 10) {
			who = nodeidtest.ID(uint64(100 + rng.IntN(n))) // the process had another replica
		}
		v.Config.Learners = append(v.Config.Learners, id)
		v.Replicas = append(v.Replicas, randomReplica(rng, id, who, healthy))
	}
	if oneIn(rng, 20) {
		v.Replicas = slices.Delete(v.Replicas, 0, 1)
	}
	for i := range rng.IntN(4) {
		p := Prepared{ID: nodeid.ReplicaID(30 + i), Instance: nodeidtest.ID(uint64(100 + rng.IntN(n+1))),
			State: State(rng.IntN(4)),
			Since: time.Hour - time.Duration(rng.IntN(12000))*time.Millisecond}
		if p.Sent = p.Since; p.State == Asked && oneIn(rng, 2) {
			p.Since -= 28 * time.Second
		}
		if oneIn(rng, 20) {
			p.ID = nodeid.ReplicaID(20 + rng.IntN(3))
		}
		v.Prepared = append(v.Prepared, p)
	}
	v.Pending = oneIn(rng, 20)
	if oneIn(rng, 30) {
		v.Config.Outgoing = []nodeid.ReplicaID{10, 11, 12}
	}
	if oneIn(rng, 20) {
		v.Fresh = 0
	}
	return v
}

func randomInstance(rng *rand.Rand, i, healthy int) Registered {
	r := Registered{Instance: nodeidtest.ID(uint64(100 + i)), Name: fmt.Sprint("n", i), Order: uint64(9 - i),
		Build:   int64(i % 3),
		Session: !oneIn(rng, 2+healthy*2), Reachable: !oneIn(rng, 2+healthy*2),
		Leaving: oneIn(rng, 1+healthy*2), Zone: []string{"", "a", "b", "c"}[rng.IntN(4)]}
	if oneIn(rng, 3+healthy) {
		r.Lost = rng.IntN(5)
	}
	if oneIn(rng, 20) {
		r.Name = fmt.Sprint("n", rng.IntN(i+1))
	}
	return r
}

func randomReplica(rng *rand.Rand, id nodeid.ReplicaID, who nodeid.ID, healthy int) Replica {
	r := Replica{ID: id, Instance: who, Active: !oneIn(rng, 1+healthy), CaughtUp: !oneIn(rng, 3),
		LifeOver: oneIn(rng, 2+healthy*3), Renewed: oneIn(rng, 2+healthy*3)}
	r.Full = r.CaughtUp && !oneIn(rng, 3)
	r.Settled = r.CaughtUp && !oneIn(rng, 3)
	if !r.Active {
		r.SilentFor = []time.Duration{time.Second, 4999 * time.Millisecond, 5 * time.Second, 59 * time.Second,
			time.Minute}[rng.IntN(5)]
	}
	if oneIn(rng, 30) {
		r.Instance = nodeidtest.ID(0)
	}
	return r
}

func shuffled(rng *rand.Rand, v View) View {
	v.Config.Voters, v.Config.Learners = shuffle(rng, v.Config.Voters), shuffle(rng, v.Config.Learners)
	v.Replicas, v.Registered, v.Prepared = shuffle(rng, v.Replicas), shuffle(rng, v.Registered),
		shuffle(rng, v.Prepared)
	v.Settings.Founders = shuffle(rng, v.Settings.Founders)
	return v
}

func shuffle[E any](rng *rand.Rand, list []E) []E {
	list = slices.Clone(list)
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
