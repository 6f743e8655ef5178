//go:build linux

package proctest

import (
	"fmt"
	"testing"
	"time"
)

// TestTwoOfFive kills two of five voters, ten seconds apart, in all combinations of leader and
// follower.
func TestTwoOfFive(t *testing.T) {
	for _, roles := range [...][2]string{{"leads", "votes"}, {"votes", "leads"}, {"votes", "votes"},
		{"leads", "leads"}} {
		t.Run(roles[0]+" then "+roles[1], func(t *testing.T) {
			begin(t, whole)
			w := newWorld(t, settings{replicas: 5, voters: 5})
			fleet := w.startAll(5)
			w.waitReady(slack*readyTime, fleet...)
			var dead []*instance
			for i, role := range roles {
				if i > 0 {
					time.Sleep(10 * time.Second)
				}
				victim := w.leader(without(fleet, dead...)...)
				if role == "votes" {
					victim = without(fleet, append(dead, victim)...)[0]
				}
				w.kill(victim)
				dead = append(dead, victim)
			}
			living := without(fleet, dead...)
			for _, in := range living {
				w.granted(in, slack*failover)
			}
			w.waitVoters(slack*readyTime, living...) // three of the five voters remain
			for _, in := range dead {
				w.waitReady(slack*readyTime, w.start(in.name, in.machine))
			}
			w.verdict(slack * readyTime)
		})
	}
}

// TestAllAtOnce ends all instances of a fleet and starts them again with other addresses.
func TestAllAtOnce(t *testing.T) {
	for _, how := range []string{byLeave, byKill} {
		for _, n := range []int{3, 5} {
			t.Run(fmt.Sprintf("%s/memory/%d", how, n), func(t *testing.T) {
				in := whole
				if n == 3 && how == byLeave {
					in = always
				}
				begin(t, in)
				w := newWorld(t, settings{replicas: n, ttl: 2 * time.Second, grace: true, groups: 2,
					noVoter: how == byKill})
				w.restart(n, how)
			})
		}
	}
	t.Run(byKill+"/durable/3", func(t *testing.T) {
		begin(t, always)
		w := newWorld(t, settings{replicas: 3, durable: true, ttl: 2 * time.Second, grace: true, noVoter: true})
		w.restart(3, byKill)
	})
	t.Run(byLeave+"/durable/3", func(t *testing.T) {
		begin(t, whole)
		w := newWorld(t, settings{replicas: 3, durable: true, ttl: 2 * time.Second, grace: true})
		w.restart(3, byLeave)
	})
}

const allLeave = 2 * time.Second

func (w *world) restart(n int, how string) {
	w.t.Helper()
	fleet := w.startAll(n)
	w.waitReady(slack*readyTime, fleet...)
	time.Sleep(2 * time.Second)
	w.lose(fleet...)
	w.depart(how, fleet...)
	for _, d := range w.departures {
		if d.took > slack*allLeave {
			w.t.Errorf("all left at once, and %s took %v, more than %d times %v: there is no instance to hand over to",
				d.who.life, d.took, slack, allLeave)
		}
	}
	w.list()
	w.waitReady(slack*readyTime, w.startAll(n)...)
	time.Sleep(2 * time.Second)
	w.verdict(slack * readyTime)
}

// TestSoleVoterOfTwo kills the only voter of two instances. The other instance cannot detect
// whether the voter runs. So it is granted no lock until the voter returns and both instances have
// founded a new group.
func TestSoleVoterOfTwo(t *testing.T) {
	begin(t, always)
	w := newWorld(t, settings{replicas: 2, ttl: 2 * time.Second, grace: true, groups: 2, noVoter: true})
	fleet := w.startAll(2)
	w.waitReady(slack*readyTime, fleet...)
	voter := w.leader(fleet...)
	survivor := without(fleet, voter)[0]
	w.lose(fleet...)
	w.kill(voter)
	w.notGranted(survivor, 5*time.Second)
	w.waitReady(slack*readyTime, w.start(voter.name, voter.machine))
	w.verdict(slack * readyTime)
}

// For two minutes, TestFlapping cuts off or kills one of four instances every five or ten seconds.
// The other instances must be granted locks all the time.
func TestFlapping(t *testing.T) {
	const flaps, every = 12, 5 * time.Second
	t.Run("cut off", func(t *testing.T) {
		begin(t, whole)
		w := newWorld(t, settings{replicas: 4})
		fleet := w.startAll(4)
		w.waitReady(slack*readyTime, fleet...)
		leader := w.leader(fleet...)
		flapping := without(fleet, leader)[0]
		others := without(fleet, flapping)
		w.lose(flapping)
		for range flaps {
			w.net.cut([]*machine{flapping.machine}, machinesOf(others))
			w.keepsGranting(every, others...)
			w.net.heal()
			w.keepsGranting(every, others...)
		}
		w.verdict(slack * readyTime)
	})
	t.Run("killed", func(t *testing.T) {
		begin(t, whole)
		w := newWorld(t, settings{replicas: 4})
		fleet := w.startAll(4)
		w.waitReady(slack*readyTime, fleet...)
		flapping := fleet[3]
		for range flaps {
			w.keepsGranting(every, fleet[:3]...)
			w.kill(flapping)
			w.keepsGranting(every, fleet[:3]...)
			flapping = w.start(flapping.name, flapping.machine)
		}
		w.waitReady(slack*readyTime, flapping)
		w.verdict(slack * readyTime)
	})
}

// TestScale grows a group from one instance to nine, and then shrinks it to one instance, the
// oldest instances first.
func TestScale(t *testing.T) {
	begin(t, whole)
	const most = 9
	w := newWorld(t, settings{replicas: 1})
	fleet := w.startAll(1)
	w.waitReady(slack*readyTime, fleet...)
	for i := 1; i < most; i++ {
		m := w.machine()
		w.list(append(machinesOf(fleet), m)...)
		fleet = append(fleet, w.start(nameOf(i), m))
		w.waitReady(slack*readyTime, fleet[i])
	}
	w.waitVoters(slack*readyTime, fleet...)
	for len(fleet) > 1 {
		w.leave(fleet[0])
		fleet = fleet[1:]
		w.list(machinesOf(fleet)...)
		w.waitAllReady(slack * readyTime)
	}
	w.verdict(slack * readyTime)
}
