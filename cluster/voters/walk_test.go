package voters

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

func (w *world) living() []*proc {
	return slices.DeleteFunc(slices.Clone(w.procs), func(p *proc) bool { return !p.alive || p.leaving > 0 })
}

func (w *world) nemesis(most int) {
	living := w.living()
	if len(living) == 0 || !w.chance(0.03) || w.careful && w.now < w.struck+600*time.Millisecond {
		return
	}
	w.struck = w.now
	p := living[w.rng.IntN(len(living))]
	kind := w.rng.IntN(7)
	if kind != 2 && kind >= 1 && kind <= 4 && w.careful && !w.survives(p) {
		return
	}
	switch kind {
	case 0:
		if len(living) < most {
			if i := w.rng.IntN(most); !slices.ContainsFunc(w.procs,
				func(p *proc) bool { return p.alive && p.name == fmt.Sprint("n", i) }) {
				w.start(fmt.Sprint("n", i), []string{"a", "b", "c"}[i%3])
			}
		}
	case 1:
		w.note("%s is killed", p.name)
		w.crash(p)
		w.missed(p)
	case 2:
		w.note("%s leaves", p.name)
		p.leaving = w.now
	case 3, 4:
		if !p.cut {
			w.note("%s is silent", p.name)
			p.cut = true
			w.missed(p)
		}
	case 5:
		if w.leader != 0 {
			w.elect()
		}
	case 6:
		w.comeBack(0.5)
	}
}

// survives reports whether the group keeps its majorities without process p, also after a change in
// flight.
func (w *world) survives(p *proc) bool {
	sets := [][]nodeid.ReplicaID{w.config.Voters, w.config.Outgoing}
	if len(w.config.Voters) == 1 && w.replicas[w.config.Voters[0]].of.leaving > 0 {
		return false // rule 12 then needs two voters, and the loss of one ends the majority
	}
	if w.flight != nil {
		sets = append(sets, after(w.config, w.flight.step).Voters)
	}
	for _, set := range sets {
		left := slices.DeleteFunc(slices.Clone(set), func(id nodeid.ReplicaID) bool {
			return !w.up(id) || w.replicas[id].of == p
		})
		if len(set) > 0 && len(left) <= len(set)/2 {
			return false
		}
	}
	return true
}

// missed is called when process p gets out of contact. In a careful world, the leader then
// notices this at once. If a replica disappears unnoticed and another voter is missing, a change
// that needs the vote of this replica can hang. The package comment names this limit, and careful
// worlds do not test it.
func (w *world) missed(p *proc) {
	for _, r := range w.replicas {
		if r.of == p && w.careful {
			r.heard = min(r.heard, w.now-500*time.Millisecond)
		}
	}
}

func (w *world) comeBack(share float64) {
	for _, p := range slices.Clone(w.procs) {
		switch {
		case !w.chance(share):
		case p.cut:
			p.cut = false
		case !p.alive && p.leaving == 0 &&
			!slices.ContainsFunc(w.procs, func(o *proc) bool {
				return o.name == p.name && o != p &&
					(o.alive || nodeid.Compare(o.who, p.who) > 0)
			}):
			if p.alive = w.settings.Durable; p.alive {
				p.announced = false
				continue
			}
			w.start(p.name, p.zone)
		}
	}
}

// settle runs the world for a while without faults and returns what is still wrong then, or "".
func (w *world) settle() string {
	w.quiet = true
	w.comeBack(1)
	for range 1600 {
		w.step()
	}
	if w.fault != "" {
		return w.fault
	}
	if w.leader == 0 {
		return "no leader"
	}
	eligible := 0
	for _, p := range w.living() {
		if len(w.settings.Founders) == 0 || slices.Contains(w.settings.Founders, p.name) {
			eligible++
		}
	}
	if eligible == 0 {
		return "" // no process is left that may vote
	}
	wanted := min(w.settings.Voters, eligible)
	for _, id := range slices.Concat(w.config.Voters, w.config.Learners) {
		if !w.up(id) || w.replicas[id].of.leaving > 0 {
			return fmt.Sprintf("replica %d is still there", id)
		}
	}
	if len(w.config.Voters) != odd(wanted) || len(w.config.Learners) != wanted-odd(wanted) {
		return fmt.Sprintf("voters %v and learners %v with %d eligible", w.config.Voters, w.config.Learners, eligible)
	}
	if r := Explain(w.view()); r.Due || r.Next.Kind != None || r.Target != odd(wanted) || r.Eligible != eligible {
		return fmt.Sprintf("not at rest: %+v", r)
	}
	return ""
}

func (w *world) dump() string { return strings.Join(w.trace[max(0, len(w.trace)-60):], "\n") }

// TestWalk runs fleets with faults for a while, and then without. In half of the worlds, the
// faults never take the majority from the current voters. If the majority is lost in such a
// world, a change has lost it.
func TestWalk(t *testing.T) {
	runs, healed, changes := budget(500), 0, 0
	for seed := range runs {
		n := 1 + seed%7
		settings := Settings{Voters: []int{3, 5, 3, 1}[seed/7%4], Durable: seed%5 == 0}
		if seed%6 == 0 {
			settings.Founders = []string{"n0", "n1", "n2", "n3", "n4"}[:1+seed/6%5]
		}
		w := newWorld(uint64(seed), n, settings, []string{"a", "b", "c"}[:1+seed%3])
		w.fickle, w.careful = seed%4 == 3, seed%2 == 1
		for range 800 {
			w.step()
			w.nemesis(n + 2)
			if w.fault != "" {
				t.Fatalf("MORTISE_SEED=%d: %s\n%s", seed, w.fault, w.dump())
			}
		}
		w.fickle = w.fickle && seed%8 == 3
		w.quiet = true
		w.comeBack(1)
		if !w.careful && (!w.majority(w.config.Voters) || !w.majority(w.config.Outgoing)) {
			continue // the instances found a new group (rule 6 of package founding)
		}
		if wrong := w.settle(); wrong != "" && len(w.living()) > 0 && (w.careful || !w.over()) {
			t.Fatalf("MORTISE_SEED=%d: %s (%+v)\n%s\n%+v\n%+v", seed, wrong, settings, w.dump(), w.view(),
				Explain(w.view()))
		}
		healed++
		changes += w.changes
	}
	t.Logf("%d of %d worlds kept their majority, with %d changes", healed, runs, changes)
	if healed < runs/3 || changes < runs {
		t.Errorf("the walks prove little")
	}
}

// over reports whether the group has lost its majority although no rule was broken. This can
// happen when leavers stop after the faults have ended.
func (w *world) over() bool { return w.fault == "" && !w.majority(w.config.Voters) }
