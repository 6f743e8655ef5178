package lockfsm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestDigest follows random logs with a machine, and with one that is restored from a snapshot now
// and then. Their digests must be equal after each command. A machine that does not apply one of
// the commands, or applies another one, has another digest from then on.
func TestDigest(t *testing.T) {
	for seed := range uint64(20) {
		log := digestLog(seed)
		r := rand.New(rand.NewPCG(seed, 9))
		m, restored := log.machine(t), log.machine(t)
		omits, at := log.machine(t), r.IntN(len(log.steps))
		other, alters := log.machine(t), r.IntN(len(log.steps))
		for i, s := range log.steps {
			if r.IntN(10) == 0 {
				restored = on(t, restored, RulesVersion)
			}
			before, snapshot := m.rev, m.Snapshot(nil)
			m.Apply(s.index, s.term, s.command)
			if m.rev == before { // it changes nothing
				if !bytes.Equal(m.Snapshot(nil), snapshot) {
					t.Fatalf("seed %d: step %d takes no revision and changes the state", seed, i)
				}
				at, alters = max(at, i+1), max(alters, i+1)
			}
			restored.Apply(s.index, s.term, s.command)
			if m.Digest() != restored.Digest() {
				t.Fatalf("seed %d: after step %d the digests differ by a snapshot", seed, i)
			}
			if i != at {
				omits.Apply(s.index, s.term, s.command)
			}
			if i >= at && at < len(log.steps) && omits.Digest() == m.Digest() {
				t.Fatalf("seed %d: after step %d the digest is that without step %d", seed, i, at)
			}
			command := append([]byte(nil), s.command...)
			if i == alters {
				command[r.IntN(len(command))] ^= 1 << r.IntN(8)
			}
			other.Apply(s.index, s.term, command)
			if i >= alters && alters < len(log.steps) && other.Digest() == m.Digest() {
				t.Fatalf("seed %d: after step %d the digest is that without a changed bit in step %d", seed, i, alters)
			}
		}
	}
}

func digestLog(seed uint64) run {
	r := rand.New(rand.NewPCG(seed, 2))
	log := run{charter: charterFor(r), supported: RulesVersion}
	w := &workload{rand: r, t: newTwin(log.charter, RulesVersion), term: 5}
	for i := range 200 {
		c := w.next()
		if c.Kind == Raise {
			c = Command{Kind: EndGrace}
		}
		if i == 0 {
			c = Command{Kind: Born}
		}
		c.Rules = max(c.Rules, 1)
		w.t.apply(w.term, c)
		command, _, _ := Next(c.Append(nil))
		log.steps = append(log.steps, step{uint64(i + 1), w.term, command})
	}
	return log
}

// TestDigestOfARestoredState damages a state on its way through a snapshot, so that the snapshot
// remains valid. No command touches what was damaged, and yet the digest differs.
func TestDigestOfARestoredState(t *testing.T) {
	w := newWorld(t)
	a := w.session(1)
	for n := range 5 {
		w.acquire(a, Number(n+1), fmt.Sprint("k", n), Granted)
	}
	w.do(Command{Kind: Stamp, WallUnixMS: w.m.wallUnixMS + 1}, Done) // its revision is used for nothing else
	w.do(Command{Kind: Put, Key: "d", Value: []byte("v"), Nonce: Nonce{9}}, Done)
	for name, damage := range map[string]func(m *Machine){
		"an entry is lost":   func(m *Machine) { m.remove(m.locks.byKey["k2"].first) },
		"a token is another": func(m *Machine) { m.locks.byKey["k4"].first.token++ },
		"a mode is another": func(m *Machine) {
			e := m.locks.byKey["k3"].first
			e.lock.discharge(e, &m.effort)
			e.mode = ModeIX
			e.lock.admit(e, &m.effort)
			e.lock.findLeast(&m.effort)
		},
		"a number is another": func(m *Machine) {
			e := m.locks.byKey["k4"].tail()
			e.session.requests.Delete(uint64(e.number))
			e.number++
			e.session.next++
			e.session.index(e)
		},
		"data is lost": func(m *Machine) { m.clear(m.locks.byKey["d"]); m.rev-- },
		"a session is lost": func(m *Machine) {
			s := m.sessions.last
			for s.requests.Len() > 0 {
				m.remove(s.firstRequest())
			}
			m.unlinkSession(s)
		},
	} {
		damaged := on(t, w.m, RulesVersion)
		if damaged.Digest() != w.m.Digest() {
			t.Fatal("a snapshot changes the digest")
		}
		before := damaged.digest.chain
		damage(damaged)
		if restored := on(t, damaged, RulesVersion); restored.digest.chain != before || restored.rev != w.m.rev ||
			restored.Digest() == w.m.Digest() {
			t.Errorf("%s, and the digest is the same", name)
		}
	}
}

// TestDigestOfAMillionLocks finds one changed entry among a million, without visiting the others.
func TestDigestOfAMillionLocks(t *testing.T) {
	slow.Nightly(t)
	if underRace {
		t.Skip("its setup takes seconds")
	}
	c := newCrowd(t, 100, million)
	damaged := on(t, c.m, RulesVersion)
	e := damaged.locks.byKey[fmt.Sprintf("orders/%09d", million/2)].first
	damaged.remove(e)
	damaged = on(t, damaged, RulesVersion)
	began := time.Now()
	found := damaged.Digest() != c.m.Digest()
	if took := time.Since(began); !found || took > time.Millisecond {
		t.Errorf("found %v after %v", found, took)
	}
}
