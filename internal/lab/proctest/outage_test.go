//go:build linux

package proctest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// outagesEnv is the number of outages. The default is 8.
const outagesEnv = "MORTISE_OUTAGES"

// recovery is the longest time from the end of an outage until a group grants locks, if no process
// has ended: a dial under way (a second), the pause after it (half a second), and an election.
const recovery = 1500*time.Millisecond + failover

// outage is one kind of outage: all links in a group of the given size are cut for the duration
// `cut`.
type outage struct {
	instances int
	ttl, cut  time.Duration
}

// outages returns every kind of outage. There are groups of three and five instances, and several
// TTLs. For each of them a cut lasts 500 ms, the TTL, twice the TTL (at most 45 s), or a minute.
func outages() []outage {
	var all []outage
	for _, n := range []int{3, 5} {
		for _, ttl := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
			30 * time.Second} {
			for _, cut := range []time.Duration{500 * time.Millisecond, ttl, min(2*ttl, 45*time.Second), time.Minute} {
				all = append(all, outage{n, ttl, cut})
			}
		}
	}
	return all
}

// TestOutages cuts all links of a group without directories, while no process ends. The group must
// never be given up, so settings.groups is one.
func TestOutages(t *testing.T) {
	begin(t, whole)
	rounds, err := strconv.Atoi(os.Getenv(outagesEnv))
	if err != nil {
		rounds = 8
	}
	table := outages()
	worlds := map[string][]outage{}
	var order []string
	for i := range rounds {
		o := table[i*11%len(table)] // 11 is coprime to the length, so all kinds take their turn
		name := fmt.Sprintf("%d instances, TTL %v", o.instances, o.ttl)
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
		worlds[name] = append(worlds[name], o)
	}
	for _, name := range order {
		t.Run(name, func(t *testing.T) {
			begin(t, whole)
			list := worlds[name]
			w := newWorld(t, settings{replicas: list[0].instances, voters: list[0].instances, ttl: list[0].ttl})
			fleet := w.startAll(list[0].instances)
			w.waitReady(slack*readyTime, fleet...)
			w.lose(fleet...)
			group := fleet[0].status().Group
			for _, o := range list {
				w.outage(fleet, o, group)
			}
			w.verdict(slack * readyTime)
		})
	}
}

// outage causes one outage and measures how long each instance waits for the next grant.
func (w *world) outage(fleet []*instance, o outage, group string) {
	w.t.Helper()
	for i, in := range fleet {
		w.net.cut(machinesOf(fleet[i:i+1]), machinesOf(without(fleet, in)))
	}
	time.Sleep(o.cut)
	w.net.heal()
	healed := time.Now()
	var took []time.Duration
	for _, in := range fleet {
		w.granted(in, slack*recovery)
		took = append(took, time.Since(healed).Round(time.Millisecond))
	}
	w.t.Logf("cut of %v: first granted after %v, all after %v (bound %v, asserted %v)", o.cut, took[0],
		took[len(took)-1], recovery, slack*recovery)
	for _, in := range fleet {
		if now := in.status().Group; now != group {
			w.t.Fatalf("after a cut of %v %s belongs to group %v instead of %v", o.cut, in.life, now, group)
		}
	}
}
