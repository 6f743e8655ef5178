package lockfsm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

type step struct {
	index, term uint64
	command     []byte
}

func encode(t testing.TB, c Command) []byte {
	t.Helper()
	command, rest, err := Next(c.Append(nil))
	if err != nil || len(rest) > 0 {
		t.Fatalf("Next(%+v) leaves %d bytes, %v", c, len(rest), err)
	}
	return command
}

// TestTwin applies the same random commands to the machine and to its twin, a simple second
// implementation. After each command the results, the notices and the states must be equal. At
// random times the machine is restored from its snapshot. To run one seed: go test -run
// 'TestTwin/seed=17$'.
func TestTwin(t *testing.T) {
	seen := map[outcome]int{}
	seeds, ran := 400, 0
	if testing.Short() || underRace {
		seeds = 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			ran++
			run := compareWithTwin(t, uint64(seed), 600, seen)
			if seed%4 == 0 {
				run.alwaysRestored(t)
			}
			if seed < 6 {
				run.steps = run.steps[:150]
				run.restoredAtEveryPrefix(t)
			}
		})
	}
	if ran == 400 && !t.Failed() {
		allMet(t, seen)
	}
}

type outcome struct {
	kind Kind
	code Code
}

// waited counts the commands that OnlyWait accepted, and yielded those for which a stay must yield.
const (
	waited  Code = 0xff
	yielded Code = 0xfe
	// upgraded, upgrading and upgradeLock count upgrades that were granted, waited, or were a
	// deadlock.
	upgraded    Code = 0xfd
	upgrading   Code = 0xfc
	upgradeLock Code = 0xfb
)

// allMet checks that the workload has produced every possible outcome of each kind of command.
func allMet(t *testing.T, seen map[outcome]int) {
	everyone := []Code{NotBorn, Unsupported, Done}
	ofSession := []Code{NotBorn, Unsupported, NoSession, Stale}
	for kind, codes := range map[Kind][]Code{
		Stamp: everyone, Born: {Done}, EndGrace: everyone, Raise: everyone, Adopt: everyone,
		Open:   append(everyone, TooManySessions, OverGroupBudget, NoSession),
		Attach: append(ofSession, Done), Leaving: append(ofSession, Done), Close: append(ofSession, Done),
		Expire: append(ofSession, Done, Finished),
		Acquire: append(ofSession, Granted, Waiting, Held, Finished, BadKey, QueueFull, TooManyEntries, InGrace,
			Deadlock, NotHeld, NotAllowed, NotForced, OverSessionBudget, OverGroupBudget, waited, yielded, upgraded,
			upgrading, upgradeLock),
		Evict:    append(everyone, Finished, Kept, NotForced),
		InUse:    append(ofSession, Done, Finished),
		Lapse:    append(ofSession, Done, Finished),
		Put:      append(everyone, Changed, BadKey, OverGroupBudget, NotHeld),
		Reserve:  append(everyone, TooEarly),
		Lead:     everyone,
		Refuse:   {NotBorn, Unsupported, NoSession, Finished},
		SetValue: {Done, NotHeld, OverSessionBudget},
		Detach:   append(ofSession, Done, Finished, TooManySessions, OverGroupBudget),
		Release:  append(ofSession, Done, Finished), Cancel: append(ofSession, Done, Finished),
		Downgrade: append(ofSession, Downgraded, Finished, NotHeld),
	} {
		for _, code := range codes {
			if seen[outcome{kind, code}] == 0 {
				t.Errorf("no %v in the workload had the outcome %v", kind, code)
			}
		}
	}
}

type run struct {
	charter   Charter
	supported uint32
	steps     []step
}

func (r run) machine(t *testing.T) *Machine {
	m, err := newMachine(r.charter, r.supported)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func compareWithTwin(t *testing.T, seed uint64, length int, seen map[outcome]int) run {
	r := rand.New(rand.NewPCG(seed, 1))
	log := run{charter: charterFor(r), supported: marksVersion}
	if seed%8 == 0 {
		log.supported = 1 // so that the first Raise ends the run
	}
	stays := seed%3 == 1
	if stays {
		log.charter = staysCharter(r)
	}
	m := log.machine(t)
	w := &workload{rand: r, t: newTwin(log.charter, log.supported), term: 5, stays: stays, guests: seed%4 == 2}
	watch := newJudge()
	for i := range length {
		c := w.next()
		s := step{uint64(i + 1), w.term, encode(t, c)}
		log.steps = append(log.steps, s)
		plain := c
		plain.Rules = 0
		decoded, err := Decode(encode(t, plain))
		if err != nil && c.Kind != markKind {
			t.Fatalf("step %d: Decode(%+v): %v", i, c, err)
		}
		if decoded.Rules = max(c.Rules, 1); err != nil {
			decoded = c
		}
		position, holds := m.Position(), w.t.holds()
		yields := yieldsOf(m, c.Append(nil))
		waits := m.OnlyWait(c.Append(nil), true)
		got, want := m.Apply(s.index, s.term, s.command), w.t.apply(s.term, decoded)
		seen[outcome{got.Kind, got.Code}]++
		if code := map[Code]Code{Granted: upgraded, Waiting: upgrading, Deadlock: upgradeLock}[got.Code]; c.Upgrades {
			seen[outcome{got.Kind, code}]++
		}
		if waits && got.Kind != Stamp {
			seen[outcome{got.Kind, waited}]++
			if got.Code != Waiting || len(got.Fired) > 1 || len(got.Fired) == 1 && got.Fired[0].Last == 0 ||
				len(got.States) > 0 {
				t.Fatalf("step %d: %+v\nshould only wait, and is %s", i, c, describe(got))
			}
		}
		if len(yields) > 0 && got.Code == Waiting {
			seen[outcome{got.Kind, yielded}]++
			if f := got.Fired; len(f) != 1 || !f[0].Wanted || yields[0] != (yieldOf{f[0].Session, f[0].Number}) {
				t.Fatalf("step %d: %+v\nasked %v to yield, and then is %s", i, c, yields, describe(got))
			}
		}
		if !sameResult(got, want) {
			t.Fatalf("step %d: %+v\n got %s\nwant %s\nstate:\n%s", i, c, describe(got), describe(want), w.t.picture())
		}
		if got, want := m.picture(), w.t.picture(); !got.equal(want) {
			t.Fatalf("step %d: %+v\n got %s\nwant %s", i, c, got, want)
		}
		if err := m.Check(); err != nil {
			t.Fatalf("step %d: %+v\n%v\n%s", i, c, err, m.picture())
		}
		if got, want := spelled(t, m, position), w.t.happened(holds, decoded); !slices.Equal(got, want) {
			t.Fatalf("step %d: %+v\n got the events %q\nwant %q\n%s", i, c, got, want, m.picture())
		}
		if err := watch.see(m); err != nil {
			t.Fatalf("step %d: %+v\n%v\n%s", i, c, err, m.picture())
		}
		if r.IntN(50) == 0 && m.Failed() == nil {
			m = again(t, m)
		}
	}
	return log
}

func again(t *testing.T, m *Machine) *Machine {
	t.Helper()
	snapshot := m.Snapshot(nil)
	n, err := restore(snapshot, m.supported)
	if err != nil {
		t.Fatalf("restore: %v\n%s", err, m.picture())
	}
	if got, want := n.picture(), m.picture(); !got.equal(want) {
		t.Fatalf("restored\n%s\nfrom\n%s", got, want)
	}
	if !bytes.Equal(n.Snapshot(nil), snapshot) {
		t.Fatalf("a restored machine's snapshot differs from what it was restored from:\n%s", m.picture())
	}
	return n
}

func (r run) alwaysRestored(t *testing.T) {
	t.Helper()
	a, b := r.machine(t), r.machine(t)
	for i, s := range r.steps {
		want, got := a.Apply(s.index, s.term, s.command), b.Apply(s.index, s.term, s.command)
		if !sameResult(got, want) {
			t.Fatalf("step %d on the restored machine\n got %s\nwant %s\n%s", i, describe(got), describe(want),
				a.picture())
		}
		if !bytes.Equal(a.Snapshot(nil), b.Snapshot(nil)) {
			t.Fatalf("step %d: equal logs, unequal snapshots of\n%s", i, a.picture())
		}
		if a.Failed() != nil {
			return
		}
		b = again(t, b)
	}
}

func (r run) restoredAtEveryPrefix(t *testing.T) {
	t.Helper()
	final := r.machine(t)
	for _, s := range r.steps {
		final.Apply(s.index, s.term, s.command)
	}
	want := final.Snapshot(nil)
	prefix := r.machine(t)
	for i, s := range r.steps {
		if prefix.Failed() != nil {
			return
		}
		m := again(t, prefix)
		for _, s := range r.steps[i:] {
			m.Apply(s.index, s.term, s.command)
		}
		if !bytes.Equal(m.Snapshot(nil), want) {
			t.Fatalf("restored before step %d, it ends differently:\n%s\nwant\n%s", i, m.picture(), final.picture())
		}
		prefix.Apply(s.index, s.term, s.command)
	}
}

// judge checks three guarantees without the help of the twin: the tokens of a key rise, all holders
// of a key may hold it together, and no request overtakes an exclusive request.
type judge struct {
	highest map[string]Token
	held    map[string][]Token // tokens that hold each key after the last command
}

func newJudge() *judge { return &judge{map[string]Token{}, map[string][]Token{}} }

func (j *judge) see(m *Machine) error {
	for l := m.locks.first; l != nil; l = l.next {
		var held []Token
		var holders []twinEntry
		for e := l.first; e != nil; e = e.after {
			if e.token == 0 && e.mode == ModeX {
				for after := e.after; after != nil; after = after.after {
					if after.token != 0 {
						return fmt.Errorf("%q: the entry at %d is granted before the one at %d", l.key, after.rev,
							e.rev)
					}
				}
				break
			}
			if e.token == 0 {
				continue
			}
			if !slices.Contains(j.held[l.key], e.token) && e.token <= j.highest[l.key] {
				return fmt.Errorf("%q: token %d after %d", l.key, e.token, j.highest[l.key])
			}
			held, holders = append(held, e.token), append(holders, e.described())
		}
		beside := holders
		for _, e := range holders {
			if e.hold != 0 {
				beside = e.others(holders) // an upgrade holds the lock beside its own hold
			}
		}
		if !fit(beside, l.key) {
			return fmt.Errorf("%q: %+v hold it together", l.key, holders)
		}
		for _, token := range held {
			j.highest[l.key] = max(j.highest[l.key], token)
		}
		j.held[l.key] = held
	}
	return nil
}
