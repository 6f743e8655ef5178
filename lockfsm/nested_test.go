package lockfsm

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// nestedCaller works under three nested limits, one after the other: an order, its tenant and all.
type nestedCaller struct {
	session SessionID
	next    Number
	order   int
	held    []Number // the numbers of its requests; the last one may wait
	waits   bool
}

func (c *nestedCaller) acquire(rights func(tier int) Command) Command {
	a := rights(len(c.held))
	c.next++
	a.Kind, a.Session, a.Epoch, a.Number = Acquire, c.session, 1, c.next
	if n := len(c.held); n > 0 {
		a.Owner = c.held[n-1]
	}
	c.held = append(c.held, c.next)
	return a
}

func (c *nestedCaller) release() Command {
	last := c.held[len(c.held)-1]
	c.held = c.held[:len(c.held)-1]
	return Command{Kind: Release, Session: c.session, Epoch: 1, Number: last}
}

// newGroup returns a machine and its twin, founded with the newest rules.
func newGroup(t testing.TB) (*Machine, *twin, func(Command) Result) {
	charter := smallCharter()
	charter.Rules = RulesVersion
	m, err := New(charter)
	if err != nil {
		t.Fatal(err)
	}
	twin := newTwin(charter, RulesVersion)
	both := func(c Command) Result {
		t.Helper()
		decoded, err := Decode(encode(t, c))
		if err != nil {
			t.Fatal(err)
		}
		got, want := m.Apply(1, 1, encode(t, c)), twin.apply(1, decoded)
		if !sameResult(got, want) {
			t.Fatalf("%+v\n got %s\nwant %s", c, describe(got), describe(want))
		}
		return got
	}
	both(Command{Kind: Born})
	both(Command{Kind: Stamp, WallUnixMS: 1 << 42})
	return m, twin, both
}

// TestNestedLimitsNeverDeadlock lets 64 callers nest three limits in the same order. The machine,
// and its twin at the beginning, must refuse none. At each moment a caller must be able to go on,
// and at the end nothing may be left. Every search must end in its Acquire.
func TestNestedLimitsNeverDeadlock(t *testing.T) {
	const callers, tenants, rounds, compared = 64, 3, 6000, 200
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 50))
		m, _, both := newGroup(t)
		alone := func(c Command) Result { return m.Apply(1, 1, encode(t, c)) }
		all := make([]*nestedCaller, callers)
		byRequest := map[SessionID]*nestedCaller{}
		for i := range all {
			id := both(Command{Kind: Open, Nonce: Nonce{byte(i + 1)}}).Session
			both(Command{Kind: Attach, Session: id, Epoch: 1, Number: 1, Nonce: Nonce{byte(i + 1)}})
			all[i] = &nestedCaller{session: id}
			byRequest[id] = all[i]
		}
		do := both
		granted := func(result Result) {
			for _, change := range result.Fired {
				if change.Token != 0 {
					byRequest[change.Session].waits = false
				}
			}
		}
		step := func(c *nestedCaller, ends bool) {
			if len(c.held) == 3 || ends && len(c.held) > 0 {
				granted(do(c.release()))
				return
			}
			a := c.acquire(func(tier int) Command {
				switch tier {
				case 0:
					c.order = r.IntN(tenants * 4)
					return Command{Key: fmt.Sprint("order/", c.order)}
				case 1:
					return Command{Key: fmt.Sprint("tenant/", c.order%tenants), Mode: ModePermits, Permits: 1 + r.Uint32N(2), Of: 5}
				}
				return Command{Key: "all", Mode: ModePermits, Permits: 1, Of: 7}
			})
			result := do(a)
			if result.Code != Granted && result.Code != Waiting || result.Unsearched {
				t.Fatalf("seed %d: %+v: %s", seed, a, describe(result))
			}
			c.waits = result.Code == Waiting
			granted(result)
		}
		movable := func() (ready []*nestedCaller) {
			for _, c := range all {
				if !c.waits {
					ready = append(ready, c)
				}
			}
			return ready
		}
		for i := range rounds {
			if i == compared {
				do = alone
			}
			ready := movable()
			if len(ready) == 0 {
				t.Fatalf("seed %d: all callers wait after %d steps\n%s", seed, i, m.picture())
			}
			step(ready[r.IntN(len(ready))], false)
			if i%100 == 0 {
				if err := m.Check(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for ending := true; ending; {
			ending = false
			for _, c := range movable() {
				if len(c.held) > 0 {
					step(c, true)
					ending = true
				}
			}
		}
		if c := m.Counts(); c.Entries != 0 {
			t.Fatalf("seed %d: %d entries never end\n%s", seed, c.Entries, m.picture())
		}
	}
}

// nestedCrowd returns a group in which many jobs wait under three nested limits: half of them for
// one tenant, the others, each of a tenant of its own, for a place of all. A second job waits for
// each order.
func nestedCrowd(t testing.TB, many int) (w *world, crowd SessionID, next Number) {
	c := smallCharter()
	c.Rules = RulesVersion
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	w = &world{t, m}
	w.do(Command{Kind: Born}, Done)
	crowd = w.session(1)
	acquire := func(c Command, want Code) Number {
		next++
		c.Kind, c.Session, c.Epoch, c.Number = Acquire, crowd, 1, next
		w.m.visits = 0
		if r := w.do(c, want); r.Unsearched || w.m.visits > 64 { // most of them to name a holder
			t.Fatalf("%q: unsearched: %v, %d visits", c.Key, r.Unsearched, w.m.visits)
		}
		return next
	}
	state := func(is bool) Code {
		if is {
			return Granted
		}
		return Waiting
	}
	begun := 0 // jobs that have asked for a place of all
	const ofTenant, ofAll = 5, 40
	for i := range many {
		order := acquire(Command{Key: fmt.Sprint("order/", i)}, Granted)
		acquire(Command{Key: fmt.Sprint("order/", i)}, Waiting)
		busy := i%2 == 0
		tenant := fmt.Sprint("tenant/", i)
		if busy {
			tenant = "tenant/busy"
		}
		fits := !busy || i/2 < ofTenant
		permit := acquire(Command{Key: tenant, Mode: ModePermits, Permits: 1, Of: ofTenant, Owner: order}, state(fits))
		if !fits {
			continue
		}
		begun++
		acquire(Command{Key: "all", Mode: ModePermits, Permits: 1, Of: ofAll, Owner: permit}, state(begun <= ofAll))
	}
	return w, crowd, next
}

// TestNestedRequestsAreSearchedAtOnce measures the visits of nested requests in a crowd of 2,000
// jobs: each search must end at once. Two requests that deadlock behind the crowd must be refused
// by the first searches of the leader, also of one that is restored and has marked all requests.
func TestNestedRequestsAreSearchedAtOnce(t *testing.T) {
	w, crowd, next := nestedCrowd(t, 2000)
	w.check()
	moved := 0
	// Jobs of the busy tenant end, and the next ones go on, under a permit for which others wait.
	for n := Number(3); n < 60; n += 8 { // the permits of the jobs 0, 2, 4 and so on
		r := w.do(Command{Kind: Release, Session: crowd, Epoch: 1, Number: n}, Done)
		for _, change := range r.Fired {
			if change.Token == 0 {
				continue
			}
			next++
			w.m.visits = 0
			r := w.do(Command{Kind: Acquire, Session: crowd, Epoch: 1, Number: next, Key: "all",
				Mode: ModePermits, Permits: 1, Of: 40, Owner: change.Number}, Waiting)
			if r.Unsearched || w.m.visits > 64 {
				t.Fatalf("unsearched: %v, %d visits", r.Unsearched, w.m.visits)
			}
			moved++
		}
	}
	if moved == 0 {
		t.Fatal("no job has gone on")
	}
	if w.m.Unsearched() {
		t.Fatal("a request of the crowd is unsearched")
	}
	w.check()
	a, b := w.session(2), w.session(3)
	ask := func(s SessionID, n Number, c Command) Result {
		c.Kind, c.Session, c.Epoch, c.Number = Acquire, s, 1, n
		w.m.visits = 0
		r := w.m.Apply(1, 1, encode(t, c))
		t.Logf("%q: %v, unsearched: %v, %d visits", c.Key, r.Code, r.Unsearched, w.m.visits)
		if w.m.visits > maxVisits || r.Code != Waiting && r.Code != Granted {
			t.Fatalf("%s, after %d visits", describe(r), w.m.visits)
		}
		return r
	}
	ask(a, 1, Command{Key: "x"})
	ask(b, 1, Command{Key: "tenant/pair"})
	// The two wait for each other, each behind a crowd of its own.
	crowd = w.session(4)
	for n := range Number(2000) {
		w.do(Command{Kind: Acquire, Session: crowd, Epoch: 1, Number: 2*n + 1, Key: "tenant/pair",
			Mode: ModePermits, Permits: 1, Of: 5}, Waiting)
		w.do(Command{Kind: Acquire, Session: crowd, Epoch: 1, Number: 2*n + 2, Key: "x"}, Waiting)
	}
	ask(a, 2, Command{Key: "tenant/pair", Mode: ModePermits, Permits: 1, Of: 5, Owner: 1})
	ask(b, 2, Command{Key: "x", Owner: 1})
	for name, m := range map[string]*Machine{"the leader": w.m, "a restored replica": again(t, w.m)} {
		steps, refused := 0, 0
		for searches := 1; m.Unsearched(); searches++ {
			found := m.Search()
			if steps += found.Steps; found.Refuse == nil {
				continue
			}
			command, _, _ := Next(found.Refuse)
			m.visits = 0
			if r := m.Apply(1, 1, command); r.Code != Deadlock || len(r.Circle) != 2 || m.visits > maxVisits {
				t.Fatalf("%s: %s, after %d visits", name, describe(r), m.visits)
			}
			t.Logf("%s: refused after %d searches of %d steps", name, searches, steps)
			if refused++; searches > 8 || steps > 100_000 {
				t.Errorf("%s: the deadlock was found after %d searches of %d steps", name, searches, steps)
			}
		}
		if refused != 1 {
			t.Errorf("%s: %d requests were refused", name, refused)
		}
	}
}

// BenchmarkNestedRequest measures a nested request for the last limit in a crowd of 2,000 jobs.
func BenchmarkNestedRequest(b *testing.B) {
	for _, crowd := range []int{10, 2000} {
		b.Run(fmt.Sprint(crowd, " jobs"), func(b *testing.B) {
			w, id, next := nestedCrowd(b, crowd)
			tenant := next + 1
			w.do(Command{Kind: Acquire, Session: id, Epoch: 1, Number: tenant, Key: "tenant/0",
				Mode: ModePermits, Permits: 1, Of: 5}, Granted)
			w.do(Command{Kind: Acquire, Session: id, Epoch: 1, Number: tenant + 1, Key: "tenant/0"}, Waiting)
			n := tenant + 1
			for b.Loop() {
				n++
				w.do(Command{Kind: Acquire, Session: id, Epoch: 1, Number: n, Key: "all",
					Mode: ModePermits, Permits: 40, Of: 40, Owner: tenant}, Waiting)
				w.do(Command{Kind: Release, Session: id, Epoch: 1, Number: n}, Done)
			}
		})
	}
}
