package lockfsm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
)

// markKind is the command of the rules version that is to come, see rules_nextrules.go. Builds without it meet it too.
const markKind Kind = 200

// upgradeLog draws a log in which a group goes from version 1 of the rules to version 2, and the place of the Raise. Commands that only version
// 2 has come before it and after it, some of them under a version that does not have them.
func upgradeLog(seed uint64) (run, int) {
	r := rand.New(rand.NewPCG(seed, 2))
	log := run{charter: charterFor(r)}
	w := &workload{rand: r, t: newTwin(log.charter, 2), term: 5}
	const length, raise = 160, 90
	for i := range length {
		c := w.next()
		switch {
		case i == 0:
			c = Command{Kind: Born}
		case i == raise:
			c = Command{Kind: Raise, Version: 2}
		case c.Kind == Raise:
			c = Command{Kind: EndGrace}
		case i%5 == 0:
			c = Command{Kind: markKind, Rules: 1 + uint32(i/5%2)}
		}
		c.Rules = max(c.Rules, 1)
		w.t.apply(w.term, c)
		command, _, _ := Next(c.Append(nil))
		log.steps = append(log.steps, step{uint64(i + 1), w.term, command})
	}
	return log, raise
}

// replica is one machine of a build that knows the rules up to some version, as it goes through a log.
type replica struct {
	m     *Machine
	after [][]byte // the result of each step, and the snapshot behind it
}

func (r *replica) follow(steps []step) {
	for _, s := range steps {
		line := resultLine(r.m.Apply(s.index, s.term, s.command))
		r.after = append(r.after, r.m.Snapshot(line))
	}
}

// on returns a machine of another build in the state of m: as after a restart with a directory, or a snapshot sent to one that has none.
func on(t *testing.T, m *Machine, supported uint32) *Machine {
	t.Helper()
	n, err := restore(m.Snapshot(nil), supported)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestUpgradeInAnyOrder: old and new builds beside each other, upgraded whenever, are byte for byte the same replica until the group is raised, and
// those that are new then, for ever. A build that is too old fails at the Raise, neither before nor unseen. Replicas have nothing in common but
// the log and the snapshots that they send each other, so one replica that changes its build at each place of the log, and back, stands for all
// orders.
func TestUpgradeInAnyOrder(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			log, raise := upgradeLog(seed)
			log.supported = 2
			reference := &replica{m: log.machine(t)}
			reference.follow(log.steps)
			if reference.m.Failed() != nil || reference.m.Charter().Rules != 2 {
				t.Fatalf("the new build did not get through: %v", reference.m.Failed())
			}
			log.supported = 1
			for at := range log.steps {
				r := &replica{m: log.machine(t)}
				r.follow(log.steps[:at])
				if at <= raise {
					r.m = on(t, on(t, on(t, r.m, 2), 1), 2) // upgraded, set back, upgraded
					r.follow(log.steps[at:])
					same(t, at, r.after, reference.after)
				} else {
					tooOld(t, r, reference, raise)
					joins(t, log, at, reference)
				}
			}
			marked(t, log, raise)
		})
	}
}

// tooOld wants r, which was not upgraded, to have failed at the Raise.
func tooOld(t *testing.T, r, reference *replica, raise int) {
	t.Helper()
	same(t, raise, r.after[:raise], reference.after[:raise])
	if err := r.m.Failed(); !errors.Is(err, ErrRules) || r.m.Charter().Rules != 1 {
		t.Fatalf("a build that is too old: %v, at version %d", err, r.m.Charter().Rules)
	}
	if len(r.m.Snapshot(nil)) != 0 {
		t.Fatal("a machine that has failed gives a snapshot")
	}
}

// joins wants a replica that begins from the snapshot of another behind the Raise to be the same as all others, and one of a build that is too old
// not to begin at all.
func joins(t *testing.T, log run, at int, reference *replica) {
	t.Helper()
	log.supported = 2
	r := &replica{m: log.machine(t)}
	r.follow(log.steps[:at])
	if _, err := restore(r.m.Snapshot(nil), 1); !errors.Is(err, ErrRules) {
		t.Fatalf("an old build takes a snapshot of the new rules: %v", err)
	}
	r.m = on(t, r.m, 2)
	r.follow(log.steps[at:])
	same(t, at, r.after, reference.after)
}

func same(t *testing.T, at int, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("upgraded before step %d: %d steps, want %d", at, len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("upgraded before step %d: differs after step %d\n got %q\nwant %q", at, i, got[i], want[i])
		}
	}
}

// marked wants the command of version 2 to be refused alike by old and new builds before the Raise, to work behind it, and to be counted in the
// snapshot.
func marked(t *testing.T, log run, raise int) {
	t.Helper()
	seen := map[string]int{}
	for _, supported := range []uint32{1, 2} {
		log.supported = supported
		m := log.machine(t)
		for i, s := range log.steps {
			if i > raise && supported == 1 {
				break
			}
			before := m.Snapshot(nil)
			r := m.Apply(s.index, s.term, s.command)
			if r.Kind != markKind {
				continue
			}
			h, _ := Peek(s.command)
			want := Malformed // unknown under this version, or to this build
			if i < raise && h.Rules == 2 {
				want = Unsupported
			} else if i > raise && h.Rules == 2 && RulesVersion >= 2 {
				want = Done
			}
			seen[want.String()]++
			if r.Code != want || bytes.Equal(m.Snapshot(nil), before) != (want != Done) {
				t.Fatalf("step %d, build %d: a mark under version %d is %v, want %v", i, supported, h.Rules, r.Code, want)
			}
		}
	}
	if seen["malformed"] == 0 || seen["unsupported"] == 0 || RulesVersion >= 2 && seen["done"] == 0 {
		t.Fatalf("the log lacks something: %v", seen)
	}
}

// TestTheNextBuild runs what this room has on upgrades once more in the build that knows the next version: it must replay the logs of this build
// and of all before it to the same bytes.
func TestTheNextBuild(t *testing.T) {
	if testing.Short() || RulesVersion > 1 || os.Getenv("MORTISE_BUG") != "" {
		t.Skip("in a full run of the present build")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not here")
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-short", "-tags=nextrules", ".").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("ok")) {
		t.Errorf("%v\n%s", err, out)
	}
}
