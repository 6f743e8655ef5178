//go:build linux

package proctest

import (
	"fmt"
	"testing"
	"time"
)

const (
	lossyEnv  = "MORTISE_LOSSY"       // number of leaders lost on each network; default 3
	airDelay  = 50 * time.Millisecond // in one direction
	cutFor    = 8 * time.Second
	lossyRest = 5 * time.Second // the time from the return of one leader to the loss of the next
)

// TestLossyNetwork cuts off, or kills and restarts, one leader after the other on a network that
// delays and loses packets. It limits the time in which no other instance is granted a free lock. A
// network that loses a fifth of all packets sometimes delivers nothing for half a second, so the
// goal rises with the loss.
func TestLossyNetwork(t *testing.T) {
	for _, c := range []struct {
		loss float64
		goal time.Duration
	}{{0, time.Second}, {0.05, 1500 * time.Millisecond}, {0.2, 2400 * time.Millisecond}} {
		t.Run(fmt.Sprintf("%v%% lost", 100*c.loss), func(t *testing.T) {
			begin(t, whole)
			rounds := times(t, lossyEnv, 3)
			a := newAir(uint64(time.Now().UnixNano()))
			w := newWorld(t, settings{replicas: 3, air: a, durable: true})
			fleet := w.startAll(3)
			w.waitReady(slack*readyTime, fleet...)
			a.weather(airDelay, c.loss)
			var outages []spell
			for round := range 2 * rounds {
				time.Sleep(lossyRest)
				w.waitAllReady(slack * readyTime)
				leader := w.leader(fleet...)
				rest := without(fleet, leader)
				w.lose(fleet...)
				outages = append(outages, spell{"nothing", time.Now(), time.Now().Add(lossyRest), rest})
				time.Sleep(lossyRest + apart)
				began := time.Now()
				if round%2 == 0 {
					a.silence(leader.machine, true)
					time.Sleep(cutFor)
					outages = append(outages, spell{"cut off", began, time.Now(), rest})
					a.silence(leader.machine, false)
					continue
				}
				w.kill(leader)
				time.Sleep(cutFor)
				outages = append(outages, spell{"killed", began, time.Now(), rest})
				w.close()
				again := w.start(leader.name, leader.machine)
				fleet = append(rest, again)
				w.waitReady(2*slack*readyTime, again)
			}
			a.weather(0, 0)
			w.verdict(slack * readyTime)
			t.Logf("%d packets, %d of them lost", a.carried, a.lost)
			w.spells(outages, map[string]time.Duration{"cut off": c.goal, "killed": c.goal})
		})
	}
}
