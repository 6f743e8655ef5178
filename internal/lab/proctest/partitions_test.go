//go:build linux

package proctest

import (
	"os"
	"slices"
	"testing"
	"time"
)

// shape is a way to cut the links of a fleet of five voters whose leader is known.
type shape struct {
	name string
	in   scope
	// cut cuts links. It returns the instances that must then be granted locks, and the instances
	// that must not. Any other instance may be granted locks or not.
	cut func(w *world, leader *instance, rest []*instance) (granted, refused []*instance)
}

var shapes = [...]shape{
	{"minority", always, func(w *world, leader *instance, rest []*instance) (granted, refused []*instance) {
		granted, refused = append(rest[2:], leader), rest[:2]
		w.net.cut(machinesOf(granted), machinesOf(refused))
		return granted, refused
	}},
	{"majority", whole, func(w *world, leader *instance, rest []*instance) (granted, refused []*instance) {
		granted, refused = rest[1:], append(rest[:1:1], leader)
		w.net.cut(machinesOf(granted), machinesOf(refused))
		return granted, refused
	}},
	{"leader alone", whole, func(w *world, leader *instance, rest []*instance) (granted, refused []*instance) {
		w.net.cut(machinesOf(rest), []*machine{leader.machine})
		return rest, []*instance{leader}
	}},
	{"leader is not heard", whole, func(w *world, leader *instance, rest []*instance) (granted, refused []*instance) {
		for _, in := range rest {
			w.net.cutOneWay(leader.machine, in.machine)
		}
		return rest, []*instance{leader}
	}},
	{"leader does not hear", whole, func(w *world, leader *instance, rest []*instance) (granted, refused []*instance) {
		for _, in := range rest {
			w.net.cutOneWay(in.machine, leader.machine)
		}
		return rest, []*instance{leader}
	}},
	// The two halves do not reach each other, and only the leader reaches both. The leader and
	// either half are a majority, so the leader continues.
	{"leader is the bridge", whole, func(w *world, leader *instance, rest []*instance) (granted, refused []*instance) {
		w.net.cut(machinesOf(rest[:2]), machinesOf(rest[2:]))
		return append(rest, leader), nil
	}},
	// Only one follower reaches both halves. This follower and the leader's half are a majority. The
	// other half does not reach the leader.
	{"follower is the bridge", whole, func(w *world, leader *instance, rest []*instance) (granted,
		refused []*instance) {
		near, bridge, far := []*instance{leader, rest[0]}, rest[1], rest[2:]
		w.net.cut(machinesOf(near), machinesOf(far))
		// The leader may be in either half, but the bridge always reaches it.
		return []*instance{bridge}, nil
	}},
}

func TestPartitions(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			begin(t, s.in)
			const ttl = 3 * time.Second
			during := time.Minute
			if os.Getenv(wantEnv) == "part" {
				during = 25 * time.Second
			}
			w := newWorld(t, settings{replicas: 5, voters: 5, ttl: ttl})
			fleet := w.startAll(5)
			w.waitReady(slack*readyTime, fleet...)
			leader := w.leader(fleet...)
			healing := time.Now().Add(during)
			granted, refused := s.cut(w, leader, without(fleet, leader))
			w.lose(slices.DeleteFunc(slices.Clone(fleet),
				func(in *instance) bool { return slices.Contains(granted, in) })...)
			for _, in := range granted {
				w.granted(in, slack*(ttl+failover))
			}
			// After two leases, each refused instance has detected that its own lease has expired.
			time.Sleep(2 * ttl)
			for _, in := range refused {
				w.notGranted(in, ttl)
			}
			for time.Now().Before(healing) {
				w.keepsGranting(min(time.Until(healing), 5*time.Second), granted...)
			}
			w.net.heal()
			w.verdict(slack * readyTime)
		})
	}
}
