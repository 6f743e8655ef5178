package voters

import (
	"fmt"
	"testing"
	"time"
)

// TestRestlessFounders kills one of three founders every 5 s for two minutes. The founder always
// gets its vote back within 5 s, though it was lost more than three times.
func TestRestlessFounders(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(seed, 3, Settings{Voters: 3, Founders: []string{"n0", "n1", "n2"}}, []string{"a"})
		w.run(20 * time.Second)
		w.changes = 0
		kills := 0
		for until := w.now + 2*time.Minute; w.now < until; kills++ {
			w.restart("n1")
			k := 0
			for ; len(w.config.Voters) < 3 || len(w.config.Outgoing) > 0 || !w.votes("n1"); k++ {
				if w.step(); k > 150 {
					t.Fatalf("seed %d: n1 has no vote again: %+v\n%s", seed, w.config, w.dump())
				}
			}
			w.run(5*time.Second - time.Duration(k)*tick)
		}
		if w.fault != "" || w.changes > 3*kills {
			t.Fatalf("seed %d: %s, %d changes for %d kills\n%s", seed, w.fault, w.changes, kills, w.dump())
		}
		t.Logf("%d changes for %d kills", w.changes, kills)
	}
}

func (w *world) restart(name string) {
	for _, p := range w.living() {
		if p.name == name {
			w.crash(p)
			w.start(name, p.zone)
		}
	}
}

func (w *world) votes(name string) bool {
	for _, id := range w.config.Voters {
		if w.replicas[id].of.name == name && w.up(id) {
			return true
		}
	}
	return false
}

// TestThreeRollingRestarts kills each of three founders in turn, three times within two minutes,
// as fast as Ready permits. In the third round, each founder has so many losses that an instance
// would normally get no replica. The majority must never be lost, and all three must vote when no
// change is due.
func TestThreeRollingRestarts(t *testing.T) {
	for seed := range uint64(40) {
		w := newWorld(seed, 3, Settings{Voters: 3, Founders: []string{"n0", "n1", "n2"}}, []string{"a"})
		w.careful = true
		w.run(20 * time.Second)
		began := w.now
		for i := range 9 {
			w.restart(fmt.Sprint("n", i%3))
			w.run(time.Second)
			for k := 0; w.leader == 0 || w.reconciler().Report().Due; k++ {
				if w.step(); k > 300 {
					t.Fatalf("seed %d: never ready\n%s", seed, w.dump())
				}
			}
			if w.fault != "" || len(w.config.Voters) != 3 {
				t.Fatalf("seed %d: restart %d: %s, voters %v\n%s", seed, i, w.fault, w.config.Voters, w.dump())
			}
		}
		if took := w.now - began; took > 2*time.Minute {
			t.Fatalf("seed %d: took %v, so it proves nothing", seed, took)
		}
	}
}
