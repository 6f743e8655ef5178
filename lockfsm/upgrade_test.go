package lockfsm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// markKind is the kind that the next version of the rules adds, see rules_nextrules.go. Older
// builds must refuse it.
const markKind Kind = 200

const marksVersion = 2

// upgradeLog returns a random log with a Raise to the given version, and the index of the Raise.
// The log has commands of that version before and after the Raise.
func upgradeLog(seed uint64, to uint32) (run, int) {
	r := rand.New(rand.NewPCG(seed, 2))
	log := run{charter: charterFor(r)}
	log.charter.Rules = to - 1
	w := &workload{rand: r, t: newTwin(log.charter, to), term: 5}
	const length, raise = 160, 90
	for i := range length {
		c := w.next()
		switch {
		case i == 0:
			c = Command{Kind: Born}
		case i == raise:
			c = Command{Kind: Raise, Version: to}
		case c.Kind == Raise:
			c = Command{Kind: EndGrace}
		case i%5 == 0:
			c = Command{Kind: markKind, Rules: to - 1 + uint32(i/5%2)}
		}
		c.Rules = max(c.Rules, 1)
		w.t.apply(w.term, c)
		command, _, _ := Next(c.Append(nil))
		log.steps = append(log.steps, step{uint64(i + 1), w.term, command})
	}
	return log, raise
}

// replica is a machine of one build, and what the machine returned for each entry of a log.
type replica struct {
	m     *Machine
	after [][]byte // the results of each step, and the snapshot after it
}

func (r *replica) follow(steps []step) {
	for _, s := range steps {
		line := resultLine(r.m.Apply(s.index, s.term, s.command))
		r.after = append(r.after, r.m.Snapshot(line))
	}
}

// This function restores the machine m from its snapshot, in a build that supports the given
// rules version.
func on(t *testing.T, m *Machine, supported uint32) *Machine {
	t.Helper()
	n, err := restore(m.Snapshot(nil), supported)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestUpgradeInAnyOrder checks that replicas of old and new builds are equal up to the Raise, and
// that replicas of new builds are also equal after it. A build that is too old must fail exactly at
// the Raise. Replicas share only the log and snapshots. So it is enough to change the build of a
// single replica, at each entry in turn.
func TestUpgradeInAnyOrder(t *testing.T) {
	const to = marksVersion
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			log, raise := upgradeLog(seed, to)
			log.supported = to
			reference := &replica{m: log.machine(t)}
			reference.follow(log.steps)
			if reference.m.Failed() != nil || reference.m.Charter().Rules != to {
				t.Fatalf("the new build failed: %v", reference.m.Failed())
			}
			log.supported = to - 1
			for at := range log.steps {
				r := &replica{m: log.machine(t)}
				r.follow(log.steps[:at])
				if at <= raise {
					r.m = on(t, on(t, on(t, r.m, to), to-1), to) // upgraded, downgraded, upgraded
					r.follow(log.steps[at:])
					same(t, at, r.after, reference.after)
				} else {
					tooOld(t, r, reference, raise, to-1)
					joins(t, log, at, reference, to)
				}
			}
			marked(t, log, raise)
		})
	}
}

func tooOld(t *testing.T, r, reference *replica, raise int, version uint32) {
	t.Helper()
	same(t, raise, r.after[:raise], reference.after[:raise])
	if err := r.m.Failed(); !errors.Is(err, ErrRules) || r.m.Charter().Rules != version {
		t.Fatalf("a build that is too old: %v, at version %d", err, r.m.Charter().Rules)
	}
	if len(r.m.Snapshot(nil)) != 0 {
		t.Fatal("a machine that has failed gave a snapshot")
	}
}

// This function starts a replica from a snapshot after the Raise. The replica must be equal to
// the others, and a build that is too old must refuse the snapshot.
func joins(t *testing.T, log run, at int, reference *replica, to uint32) {
	t.Helper()
	log.supported = to
	r := &replica{m: log.machine(t)}
	r.follow(log.steps[:at])
	if _, err := restore(r.m.Snapshot(nil), to-1); !errors.Is(err, ErrRules) {
		t.Fatalf("an old build accepts a snapshot of the new rules: %v", err)
	}
	r.m = on(t, r.m, to)
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

// marked checks that old and new builds refuse the command of version 2 before the Raise, and that
// it changes the snapshot after the Raise.
func marked(t *testing.T, log run, raise int) {
	t.Helper()
	seen := map[string]int{}
	for _, supported := range []uint32{marksVersion - 1, marksVersion} {
		log.supported = supported
		m := log.machine(t)
		for i, s := range log.steps {
			if i > raise && supported < marksVersion {
				break
			}
			before := m.Snapshot(nil)
			r := m.Apply(s.index, s.term, s.command)
			if r.Kind != markKind {
				continue
			}
			h, _ := Peek(s.command)
			want := Malformed // the kind is not in the version in force, or not in this build
			if i < raise && h.Rules == marksVersion {
				want = Unsupported
			} else if i > raise && h.Rules == marksVersion && RulesVersion >= marksVersion {
				want = Done
			}
			seen[want.String()]++
			if r.Code != want || bytes.Equal(m.Snapshot(nil), before) != (want != Done) {
				t.Fatalf("step %d, build %d: a mark under version %d is %v, want %v", i, supported, h.Rules, r.Code,
					want)
			}
		}
	}
	if seen["malformed"] == 0 || seen["unsupported"] == 0 || RulesVersion >= marksVersion && seen["done"] == 0 {
		t.Fatalf("the log lacks something: %v", seen)
	}
}

// TestTheNextBuild runs the upgrade tests in the build with the next version, which must also
// replay all golden logs.
func TestTheNextBuild(t *testing.T) {
	slow.Nightly(t)
	if RulesVersion >= marksVersion || os.Getenv("PLANTED_BUG") != "" {
		t.Skip("only in a full run of the present build")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command")
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-short", "-tags=nextrules",
		".").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("ok")) {
		t.Errorf("%v\n%s", err, out)
	}
}
