package lockfsm

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// After each random request, TestCirclesThroughPermits ends all requests that can end. If the
// request was accepted, all requests must end. If it was refused, it must be one that would have
// waited forever.
func TestCirclesThroughPermits(t *testing.T) {
	refused, alone, upgrades, inner, later := 0, 0, 0, 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 22))
		m, err := New(smallCharter())
		if err != nil {
			t.Fatal(err)
		}
		if seed%3 == 0 {
			m.BoundSearches(1+int(seed%5), int(seed%4))
		}
		w := &world{t, m}
		w.do(Command{Kind: Born}, Done)
		sessions := []SessionID{w.session(1), w.session(2), w.session(3)}
		next := map[SessionID]Number{}
		for range 60 {
			id := sessions[r.IntN(len(sessions))]
			live := m.players(id)
			if len(live) > 0 && r.IntN(3) == 0 {
				w.do(Command{Kind: Release, Session: id, Epoch: 1, Number: live[r.IntN(len(live))].number}, Done)
				continue
			}
			next[id]++
			command := drawn(r, id, next[id], live)
			if seed%2 == 0 {
				upgradable(r, &command, live)
			}
			before := m.players(0)
			result := m.Apply(1, 1, encode(t, command))
			if result.Code != Deadlock {
				later += searchedOn(t, m)
				if left := playOut(m.players(0)); len(left) > 0 {
					t.Fatalf("seed %d: %v for %+v, and these never end: %+v", seed, result.Code, command, left)
				}
				continue
			}
			refused++
			if command.Upgrades {
				upgrades++
			}
			if command.Inner != 0 {
				inner++
			}
			if len(result.Circle) == 1 {
				alone++
			}
			asked := contestant{session: id, number: command.Number, owner: command.Owner, inner: command.Inner,
				keys: append([]string{command.Key}, command.Keys...)}
			asked.permits, asked.of = command.Mode.Terms()
			if command.Mode == ModePermits {
				asked.permits, asked.of = command.Permits, command.Of
			}
			asked.permits, asked.of = termsOf(asked.permits, asked.of)
			asked.place, asked.rank = 1<<62, 1<<63
			if command.Upgrades {
				asked.hold, asked.rank = command.Owner, 2*uint64(m.locks.byKey[command.Key].lastInside().rev)+1
			}
			if !slices.ContainsFunc(playOut(append(before, asked)),
				func(p contestant) bool { return p.place == asked.place }) {
				t.Fatalf("seed %d: %+v is refused, and would have been served: %+v", seed, command, before)
			}
			if last := result.Circle[0]; last.Session != id {
				t.Fatalf("seed %d: the circle begins with %v", seed, last)
			}
		}
	}
	t.Logf("%d circles, %d of one request, %d of an upgrade, %d of one with two owners; %d found later", refused, alone,
		upgrades, inner, later)
	if refused < 100 || alone < 10 || upgrades < 10 || inner < 10 || later < 100 {
		t.Fatal("too few to say anything")
	}
}

// searchedOn continues the searches that ended at their bound, as a leader does, and returns how
// many requests were refused. Each must be one that would have waited forever.
func searchedOn(t *testing.T, m *Machine) (refused int) {
	t.Helper()
	for searches := 0; m.Unsearched(); searches++ {
		found := m.Search()
		if searches > 1000 {
			t.Fatal("the searches never end")
		}
		if found.Refuse == nil {
			continue
		}
		command, _, _ := Next(found.Refuse)
		before := m.players(0)
		result := m.Apply(1, 1, command)
		if result.Code != Deadlock {
			t.Fatalf("the machine does not accept the proof: %s", describe(result))
		}
		if !slices.ContainsFunc(playOut(before), func(p contestant) bool {
			return p.session == result.Session && p.number == result.Number
		}) {
			t.Fatalf("%s is refused, and would have been served: %+v", describe(result), before)
		}
		if result.Circle[0].Session != result.Session {
			t.Fatalf("the circle begins with %v", result.Circle[0])
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		refused++
	}
	return refused
}

// upgradable makes most requests shared, upgradable or upgrades.
func upgradable(r *rand.Rand, c *Command, live []contestant) {
	n := r.IntN(8)
	if n < 6 {
		c.Mode, c.Permits, c.Of = ModeIS, 0, 0
	}
	if n < 3 {
		c.Mode, c.Keys = ModeU, nil
	}
	holds := slices.DeleteFunc(slices.Clone(live), func(p contestant) bool {
		permits, of := ModeU.Terms()
		return p.permits != permits || p.of != of
	})
	if n >= 2 && n < 5 && len(holds) > 0 {
		hold := holds[r.IntN(len(holds))]
		c.Mode, c.Permits, c.Of, c.Keys, c.Key = ModeX, 0, 0, nil, hold.keys[0]
		c.Upgrades, c.Owner = true, hold.number
		if inner := live[r.IntN(len(live))].number; inner != hold.number && r.IntN(2) == 0 {
			c.Inner = inner
		}
	}
}

func drawn(r *rand.Rand, id SessionID, n Number, live []contestant) Command {
	keys := []string{"a", "b", "c"}
	c := Command{Kind: Acquire, Session: id, Epoch: 1, Number: n, Key: keys[r.IntN(3)], Mode: ModePermits, Of: 3,
		Permits: 1 + r.Uint32N(3)}
	if r.IntN(4) == 0 {
		c.Key, c.Keys = "a", keys[1+r.IntN(2):]
	}
	if r.IntN(5) == 0 {
		c.Mode, c.Permits, c.Of = ModeX, 0, 0
	}
	if len(live) > 0 {
		c.Owner = live[r.IntN(len(live))].number
	}
	return c
}

type contestant struct {
	session     SessionID
	number      Number
	owner       Number
	inner       Number
	keys        []string
	place       Revision
	rank        uint64
	hold        Number // of an upgrade, the number of its hold
	holds       bool
	permits, of uint32
}

func (m *Machine) players(of SessionID) (all []contestant) {
	for id, s := range m.sessions.byID {
		for e := range s.requests.All() {
			if of != 0 && of != id {
				continue
			}
			p := contestant{session: id, number: e.number, place: e.rev, rank: e.rank(), holds: e.token != 0}
			if e.upgrades() {
				p.hold = e.extra.owner
			}
			p.permits, p.of = e.terms()
			if e.extra != nil {
				p.owner, p.inner = e.extra.owner, e.extra.inner
			}
			for _, each := range e.all(new([1]*entry)) {
				p.keys = append(p.keys, each.lock.key)
			}
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b contestant) int { return int(a.place) - int(b.place) })
	return all
}

// playOut repeatedly removes a request that can end, until there is none. It returns the requests
// that are left. It uses the same rule as game.
func playOut(all []contestant) []contestant {
	for {
		i := slices.IndexFunc(all, func(p contestant) bool {
			under := func(o contestant) bool { return o.session == p.session && (o.owner == p.number || o.inner == p.number) }
			return !slices.ContainsFunc(all, under) &&
				(p.holds || !slices.ContainsFunc(p.keys, func(key string) bool { return !p.room(all, key) }))
		})
		if i < 0 {
			return all
		}
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
}

func (p contestant) room(all []contestant, key string) bool {
	taken, least := uint64(p.permits), p.of
	for _, o := range all {
		own := p.hold != 0 && o.session == p.session && o.number == p.hold
		if o.rank < p.rank && !own && slices.Contains(o.keys, key) {
			taken, least = taken+uint64(o.permits), min(least, o.of)
		}
	}
	return taken <= uint64(least)
}

func TestAPermitCircle(t *testing.T) {
	w := newWorld(t)
	a := w.session(1)
	more := Command{Kind: Acquire, Session: a, Epoch: 1, Key: "k", Mode: ModePermits, Permits: 1, Of: 3, Owner: 1}
	all := Command{Kind: Acquire, Session: a, Epoch: 1, Number: 1, Key: "k", Mode: ModePermits, Permits: 3, Of: 3}
	w.do(all, Granted)
	more.Number = 2
	r := w.do(more, Deadlock)
	if len(r.Circle) != 1 || r.Circle[0].Key != "k" || r.Circle[0].Session != a {
		t.Fatalf("the circle is reported as %+v", r.Circle)
	}
	w.check()
}

// TestATryClosesNoCircle checks that a request is no deadlock if a Try in its circle ends by
// itself. Here the Try is made under a lock of alice, and waits for the answer of a stay of bob.
// Under that stay bob requests the lock of alice.
func TestATryClosesNoCircle(t *testing.T) {
	for name, alone := range map[string]Command{"exclusive": {}, "permits": {Mode: ModePermits, Permits: 2, Of: 2}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.do(Command{Kind: Stamp, WallUnixMS: 1 << 42}, Done)
			alice, bob := w.session(1), w.session(2)
			of := func(s SessionID, n Number, key string, c Command) Command {
				c.Kind, c.Session, c.Epoch, c.Number, c.Key = Acquire, s, 1, n, key
				return c
			}
			w.do(of(bob, 1, "kept", Command{Sticky: true}), Granted)
			w.do(of(alice, 1, "x", alone), Granted)
			w.do(of(alice, 2, "kept", Command{Try: true, Owner: 1}), Waiting)
			asked := alone
			asked.Owner = 1
			w.do(of(bob, 2, "x", asked), Waiting)
		})
	}
}
