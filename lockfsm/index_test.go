package lockfsm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIndex applies the same random commands to a machine and to one without indexes. The numbers
// of inside entries rise above the bound and fall below it again. Results and states must be equal,
// and Check compares each index with its queue.
func TestIndex(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() || underRace {
		seeds = 10
	}
	crowded := 0
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 48))
		c := smallCharter()
		c.Rules, c.Limits.EntriesPerSession, c.Limits.WaitersPerLock = RulesVersion, 1000, 100
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		plain, _ := New(c)
		plain.indexFrom = 1 << 30
		var sessions []SessionID
		apply := func(c Command) Result {
			command := encode(t, c)
			got, want := m.Apply(1, 1, command), plain.Apply(1, 1, command)
			if !sameResult(got, want) {
				t.Fatalf("seed %d: %+v\n got %s\nwant %s", seed, c, describe(got), describe(want))
			}
			return got
		}
		apply(Command{Kind: Born})
		apply(Command{Kind: Stamp, WallUnixMS: c.FoundedUnixMS + 10_000_000})
		for i := range byte(4) {
			sessions = append(sessions, apply(Command{Kind: Open, Nonce: Nonce{1 + i}}).Session)
		}
		next := map[SessionID]Number{}
		for step := range 900 {
			growing := step/250%3 < 2
			apply(crowdedCommand(r, m, sessions[r.IntN(4)], next, growing))
			if l := m.locks.byKey["a"]; l != nil && l.index != nil {
				crowded++
			}
			if err := m.Check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if step%100 == 99 {
				if m = again(t, m); !bytes.Equal(m.Snapshot(nil), plain.Snapshot(nil)) {
					t.Fatalf("seed %d, step %d: the states differ", seed, step)
				}
			}
		}
	}
	if crowded < 300*int(seeds) {
		t.Fatalf("a lock had an index after %d commands only", crowded)
	}
}

// crowdedCommand acquires, or ends and changes requests, in turns of more or fewer holders.
func crowdedCommand(r *rand.Rand, m *Machine, id SessionID, next map[SessionID]Number, growing bool) Command {
	c := Command{Session: id}
	var live []*entry
	for e := range m.sessions.byID[id].requests.All() {
		live = append(live, e)
	}
	if share := r.IntN(10); len(live) == 0 || share < 3 || growing && share < 9 {
		next[id]++
		c.Kind, c.Number, c.Key, c.Notice = Acquire, next[id], []string{"a", "b"}[r.IntN(8)/7], r.IntN(3) == 0
		switch n := r.IntN(37); { // one in 37 is exclusive, and others wait behind it
		case n < 12:
			c.Mode = ModeIS
		case n < 24:
			c.Mode, c.Permits, c.Of = ModePermits, 1, 100+r.Uint32N(40)
		case n < 30:
			c.Sticky, c.Notice, c.Mode = true, false, ModeIS
		case n < 34:
			c.Mode, c.Key, c.Keys = ModeIS, "a", []string{"b"}
		case n < 35:
			c.Try = true
		case n < 36 && len(live) > 0:
			c.Key, c.Token = live[r.IntN(len(live))].lock.key, Token(1)
			if other := live[r.IntN(len(live))]; other.token != 0 {
				c.Key, c.Token = other.lock.key, other.token
			}
		}
		return c
	}
	e := live[r.IntN(len(live))]
	if !growing && r.IntN(2) == 0 {
		e = live[0]
	}
	if c.Kind, c.Number = Release, e.number; r.IntN(6) == 0 && e.token != 0 {
		c.Kind, c.Key, c.Token = Evict, e.lock.key, e.token+Token(r.IntN(2))
	}
	return c
}

// TestCrowdedLock checks that commands visit few entries of a lock with many holders.
func TestCrowdedLock(t *testing.T) {
	const holders = 20_000
	w := newWorld(t)
	id := w.session(1)
	for n := range Number(holders) {
		w.do(Command{Kind: Acquire, Session: id, Epoch: 1, Number: 1 + n, Key: "k", Mode: ModePermits,
			Permits: 1, Of: holders + uint32(n)}, Granted)
	}
	few := func(what string, f func()) {
		t.Helper()
		w.m.visits = 0
		if f(); w.m.visits > 8 {
			t.Errorf("%s visits %d entries", what, w.m.visits)
		}
	}
	few("a resumption of an unknown token", func() {
		w.do(Command{Kind: Acquire, Session: id, Epoch: 1, Number: holders + 1, Key: "k", Token: 1}, NotHeld)
	})
	few("a question for an unknown token", func() { w.m.Holds("k", 1) })
	few("a release of the least total", func() {
		w.do(Command{Kind: Release, Session: id, Epoch: 1, Number: 1}, Done)
	})
	if w.m.locks.byKey["k"].least != holders+1 {
		t.Errorf("the least total is %d", w.m.locks.byKey["k"].least)
	}
	few("an eviction of an unknown token", func() {
		w.do(Command{Kind: Evict, Number: 1, Key: "k", Token: 1}, Finished)
	})
	few("a request behind the holders", func() {
		w.do(Command{Kind: Acquire, Session: id, Epoch: 1, Number: holders + 2, Key: "k"}, Waiting)
	})
	if err := w.m.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestFewVisits checks the walks that depend on other requests than the inside entries' tokens.
func TestFewVisits(t *testing.T) {
	const many = 2000
	w := newWorld(t)
	w.do(Command{Kind: Stamp, WallUnixMS: 1 << 40}, Done)
	id := w.session(1)
	n := Number(0)
	acquire := func(c Command, want Code) {
		n++
		c.Kind, c.Session, c.Epoch, c.Number = Acquire, id, 1, n
		w.do(c, want)
	}
	visits := func(what string, most int, f func()) {
		t.Helper()
		w.m.visits = 0
		if f(); w.m.visits > most {
			t.Errorf("%s visits %d entries, at most %d may be", what, w.m.visits, most)
		}
	}
	acquire(Command{Key: "notice", Mode: ModeIS, Notice: true}, Granted)
	for range many {
		acquire(Command{Key: "notice", Mode: ModeIS}, Granted)
	}
	visits("a notice to one of many readers", 8, func() { acquire(Command{Key: "notice"}, Waiting) })

	keys := make([]string, MaxKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("several/%03d", i)
	}
	acquire(Command{Key: keys[MaxKeys-1]}, Granted)
	acquire(Command{Key: keys[MaxKeys-1]}, Waiting)
	acquire(Command{Key: keys[0], Keys: keys[1:]}, Waiting)
	visits("the end of a request before one for many keys", 8, func() {
		w.do(Command{Kind: Release, Session: id, Epoch: 1, Number: n - 1}, Done)
	})

	for range maxAsked {
		acquire(Command{Key: "stays", Mode: ModeIS, Sticky: true}, Granted)
	}
	acquire(Command{Key: "stays", Try: true}, Waiting)
	w.do(Command{Kind: Release, Session: id, Epoch: 1, Number: n}, Done)
	acquire(Command{Key: "stays", Mode: ModeIS, Sticky: true}, Granted)
	visits("a Try behind many stays", maxAsked+8, func() { acquire(Command{Key: "stays", Try: true}, QueueFull) })

	// The end of one request under an owner does not depend on the number of the others.
	acquire(Command{Key: "owner"}, Granted)
	owner := n
	for i := range many {
		acquire(Command{Key: fmt.Sprint("owned/", i), Owner: owner}, Granted)
	}
	visits("the end of one of many requests with an owner", 8, func() {
		w.do(Command{Kind: Release, Session: id, Epoch: 1, Number: owner + many/2}, Done)
	})
	if err := w.m.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestReservedTokensEndAtTheLast asks for each token around the first and the last of each stay,
// with few stays of a key and with an index.
func TestReservedTokensEndAtTheLast(t *testing.T) {
	for _, stays := range []int{1, 3, 40} {
		c := smallCharter()
		c.Rules, c.Limits.EntriesPerSession = RulesVersion, 1000
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		apply := func(c Command, want Code) Result {
			r := m.Apply(1, 1, encode(t, c))
			if r.Code != want {
				t.Fatalf("%+v: %s", c, describe(r))
			}
			return r
		}
		apply(Command{Kind: Born}, Done)
		apply(Command{Kind: Stamp, WallUnixMS: c.FoundedUnixMS + 10_000_000}, Done) // there is room for tokens
		apply(Command{Kind: EndGrace}, Done)
		session := apply(Command{Kind: Open, Nonce: Nonce{1}}, Done).Session
		apply(Command{Kind: Attach, Session: session, Epoch: 1, Nonce: Nonce{1}, Number: 1}, Done)
		for i := range stays {
			apply(Command{Kind: Acquire, Session: session, Epoch: 1, Number: Number(i + 1), Key: "k", Mode: ModeIS,
				Sticky: true}, Granted)
		}
		if indexed := m.locks.byKey["k"].index != nil; indexed != (stays == 40) {
			t.Fatalf("%d stays, with an index: %v", stays, indexed)
		}
		all := m.Entries()
		for _, e := range all {
			if e.Last == 0 {
				t.Fatalf("%+v has reserved no token", e)
			}
			for _, token := range []Token{e.Token - 1, e.Token, e.Token + 1, e.Last - 1, e.Last, e.Last + 1} {
				want := slices.ContainsFunc(all, func(e EntryInfo) bool { return e.Token < token && token <= e.Last })
				stay, got := m.Reserver("k", token)
				if got != want || got && (token <= stay.Token || token > stay.Last) {
					t.Errorf("%d stays: token %d is reserved: %v, by that of %d to %d; want %v", stays, token, got, stay.Token,
						stay.Last, want)
				}
			}
		}
	}
}
