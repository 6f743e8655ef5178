package lockfsm

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// behindWaiters returns a world in which two sessions are in a deadlock that no Acquire has found:
// each has a key, and asks for the key of the other behind many waiters.
func behindWaiters(t testing.TB, waiters int) (w *world, a, b SessionID) {
	w = newWorld(t)
	a, b = w.session(1), w.session(2)
	crowd := w.session(3)
	w.acquire(a, 1, "a", Granted)
	w.acquire(b, 1, "b", Granted)
	for n := range Number(waiters) {
		w.acquire(crowd, 2*n+1, "a", Waiting)
		w.acquire(crowd, 2*n+2, "b", Waiting)
	}
	nested := func(s SessionID, key string) Result {
		return w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: 2, Key: key, Owner: 1}, Waiting)
	}
	nested(a, "b")
	w.m.visits = 0
	if r := nested(b, "a"); !r.Unsearched || w.m.visits > 512 {
		t.Fatalf("unsearched: %v, after %d visits", r.Unsearched, w.m.visits)
	}
	return w, a, b
}

func TestDeadlockBehindManyWaiters(t *testing.T) {
	w, _, _ := behindWaiters(t, 10_000)
	info, _ := w.m.Inspect("a", 100_000)
	if last := info.Queue[len(info.Queue)-1]; !last.Unsearched {
		t.Error("the inspection does not show that the request is unsearched")
	}
	restored := again(t, w.m)
	for name, m := range map[string]*Machine{"the leader": w.m, "a restored replica": restored} {
		refused := 0
		for m.Unsearched() {
			begun := time.Now()
			s := m.Search()
			t.Logf("%s: %d steps in %v", name, s.Steps, time.Since(begun))
			if s.Refuse == nil {
				continue
			}
			command, _, _ := Next(s.Refuse)
			m.visits = 0
			r := m.Apply(1, 1, command)
			if r.Code != Deadlock || len(r.Circle) != 2 || r.Circle[0].Session != r.Session || m.visits > 512 {
				t.Fatalf("%s: %s, after %d visits", name, describe(r), m.visits)
			}
			refused++
		}
		if refused != 1 {
			t.Errorf("%s: %d requests were refused", name, refused)
		}
	}
}

// TestWrongProof checks that a Refuse with a part of a proof, or with a proof that has become
// stale, changes nothing.
func TestWrongProof(t *testing.T) {
	w, a, _ := behindWaiters(t, 200)
	found := w.m.Search()
	for found.Refuse == nil {
		found = w.m.Search()
	}
	command, _, _ := Next(found.Refuse)
	c, err := Decode(command)
	if err != nil {
		t.Fatal(err)
	}
	unchanged := func(what string, c Command, want Code) {
		t.Helper()
		before := w.m.Snapshot(nil)
		if w.do(c, want); !bytes.Equal(w.m.Snapshot(nil), before) {
			t.Errorf("%s changes the state", what)
		}
	}
	for i := range c.Proof {
		part := c
		part.Proof = append(append([]Place(nil), c.Proof[:i]...), c.Proof[i+1:]...)
		unchanged(fmt.Sprint("a proof without place ", i), part, Finished)
	}
	other := c
	other.Session = w.session(4)
	unchanged("a proof for a request that does not exist", other, Finished)
	other.Session = 12
	unchanged("a proof for a session that does not exist", other, NoSession)
	hold := c
	hold.Number = 1
	unchanged("a proof against a hold", hold, Finished)
	w.do(Command{Kind: Release, Session: a, Epoch: 1, Number: 2}, Done)
	unchanged("a stale proof", c, Finished)
	w.check()
}

// TestDeadlocksThatDelayEachOther has two circles through one request, each of which delays the
// request that has closed the other. No Acquire has found them.
func TestDeadlocksThatDelayEachOther(t *testing.T) {
	w := newWorld(t)
	w.m.BoundSearches(1, 1)
	a, b, both := w.session(1), w.session(2), w.session(3)
	for _, s := range []SessionID{a, b} {
		w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: 1, Key: "shared", Mode: ModeIS}, Granted)
	}
	w.do(Command{Kind: Acquire, Session: both, Epoch: 1, Number: 1, Key: "other", Keys: []string{"shared"}}, Waiting)
	for _, s := range []SessionID{a, b} {
		r := w.do(Command{Kind: Acquire, Session: s, Epoch: 1, Number: 2, Key: "other", Owner: 1}, Waiting)
		if !r.Unsearched {
			t.Fatal("the search in the Acquire has decided")
		}
	}
	refused, searches := 0, 0
	for ; w.m.Unsearched(); searches++ {
		if s := w.m.Search(); s.Refuse != nil {
			command, _, _ := Next(s.Refuse)
			if r := w.m.Apply(1, 1, command); r.Code != Deadlock || len(r.Circle) == 0 {
				t.Fatal(describe(r))
			}
			refused++
		}
	}
	if refused != 2 || searches > 2*maxSearches {
		t.Errorf("%d of 2 deadlocks ended, after %d searches", refused, searches)
	}
	w.check()
}

// TestARefuseThatComesTooLate loses each Refuse of the leader's searches some times, as if another
// one had ended a request of its proof before. Each deadlock must end nevertheless.
func TestARefuseThatComesTooLate(t *testing.T) {
	for late := range 3 * maxSearches {
		w, _, _ := behindWaiters(t, 200)
		lost := 0
		for searches := 0; ; searches++ {
			if !w.m.Unsearched() || searches > 10*maxSearches {
				t.Fatalf("the deadlock lasts: %d searches, and %d times the Refuse came too late", searches, lost)
			}
			s := w.m.Search()
			if s.Refuse == nil {
				continue
			}
			if lost < late {
				lost++
				continue
			}
			command, _, _ := Next(s.Refuse)
			if r := w.m.Apply(1, 1, command); r.Code != Deadlock {
				t.Fatal(describe(r))
			}
			break
		}
		w.check()
	}
}

// TestDelayedSearchEnds checks that a request which an earlier deadlock delays is searched a few
// times only, and that the leader's searches come to an end.
func TestDelayedSearchEnds(t *testing.T) {
	w := newWorld(t)
	s, x, z := w.session(1), w.session(2), w.session(3)
	const pool = 150
	ask := func(id SessionID, n, owner Number, key string, of uint32) {
		c := Command{Kind: Acquire, Session: id, Epoch: 1, Number: n, Owner: owner, Key: key}
		if of != 0 {
			c.Mode, c.Permits, c.Of = ModePermits, 1, of
		}
		r := w.m.Apply(1, 1, encode(t, c))
		if r.Code != Granted && r.Code != Waiting && r.Code != Deadlock {
			t.Fatalf("%+v: %v", c, r.Code)
		}
	}
	for n := range Number(pool) {
		ask(s, n+1, 0, "pool", pool)
	}
	ask(x, 1, 0, "y", 0)
	ask(z, 1, 0, "z", 0)
	for n := range Number(pool) {
		ask(s, pool+n+1, n+1, "pool", pool)
	}
	ask(x, 2, 1, "pool", pool)
	ask(s, 2*pool+1, 1, "z", 0)
	ask(z, 2, 1, "pool", pool)
	searches := 0
	for ; w.m.Unsearched(); searches++ {
		if searches > maxSearches*(pool+3) {
			t.Fatal("the searches never end")
		}
		if found := w.m.Search(); found.Refuse != nil {
			command, _, _ := Next(found.Refuse)
			w.m.Apply(1, 1, command)
		}
	}
	t.Logf("%d searches", searches)
	w.check()
}

// TestSearchesServeSessionsInTurn checks that a session with many unsearched requests does not keep
// another session's request waiting.
func TestSearchesServeSessionsInTurn(t *testing.T) {
	w, _, b := behindWaiters(t, 200)
	w.do(Command{Kind: Release, Session: b, Epoch: 1, Number: 2}, Done)
	for w.m.Unsearched() {
		w.m.Search()
	}
	crowd := w.session(5)
	w.acquire(crowd, 1, "c", Granted)
	w.acquire(crowd, 2, "d", Granted)
	// a nested request waits behind the owner
	w.do(Command{Kind: Acquire, Session: crowd, Epoch: 1, Number: 3, Key: "c", Owner: 2}, Waiting)
	for n := range Number(50) {
		r := w.do(Command{Kind: Acquire, Session: crowd, Epoch: 1, Number: 4 + n, Key: "a", Owner: 1}, Waiting)
		if !r.Unsearched {
			t.Fatal("the search has ended in the Acquire")
		}
	}
	w.do(Command{Kind: Acquire, Session: b, Epoch: 1, Number: 3, Key: "a", Owner: 1}, Waiting)
	for range 3 {
		if w.m.Search().Refuse != nil {
			return
		}
	}
	t.Error("the second session's request was not searched in three turns")
}

// TestASearchCountsItsWork compares a search of few rounds with one of many. Each round ends one
// request of a chain of owners, beside thousands of requests that have ended in the first round. A
// round must not visit these, because the leader's pause after a search depends on the steps, which
// are those of the others.
func TestASearchCountsItsWork(t *testing.T) {
	slow.UnderRace(t)
	const wide, samples = 6000, 8
	search := func(chain int) func() time.Duration {
		w := newWorld(t)
		id := w.session(1)
		n := Number(0)
		acquire := func(c Command) Number {
			n++
			c.Kind, c.Session, c.Epoch, c.Number = Acquire, id, 1, n
			w.m.Apply(1, 1, encode(t, c))
			return n
		}
		outer, hold := acquire(Command{Key: "outer"}), acquire(Command{Key: "hold"})
		for i := range wide {
			acquire(Command{Key: fmt.Sprint("wide/", i), Owner: hold})
		}
		for i, owner := 0, hold; i < chain; i++ {
			owner = acquire(Command{Key: fmt.Sprint("chain/", i), Owner: owner})
		}
		acquire(Command{Key: "outer", Owner: hold})
		acquire(Command{Key: "hold", Owner: outer})
		return func() time.Duration {
			start := time.Now()
			found := w.m.Search()
			if found.Refuse == nil {
				t.Fatalf("no deadlock is found: %+v", found)
			}
			return time.Since(start) / time.Duration(found.Steps)
		}
	}
	few, many := search(1), search(250)
	a, b := few(), many()
	for range samples {
		a, b = min(a, few()), min(b, many())
	}
	if b > a { // a round costs b less for each step, because it gathers nothing
		t.Errorf("a step takes %v with many rounds, and %v with few", b, a)
	}
	t.Logf("a step takes %v with many rounds, and %v with few", b, a)
}
