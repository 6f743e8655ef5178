package lockfsm

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// maxVisits bounds the entries that one command visits.
const maxVisits = 512

// crowdedGroup returns a group with a lock that many hold in every way: each holder of permits
// names another total, has asked for a notice, and is in a queue before many waiters.
func crowdedGroup(t testing.TB) (w *world, id SessionID, next Number) {
	const many = 3000
	c := smallCharter()
	c.Rules = RulesVersion
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	w = &world{t, m}
	w.do(Command{Kind: Born}, Done)
	w.do(Command{Kind: Stamp, WallUnixMS: 1 << 40}, Done)
	id = w.session(1)
	add := func(c Command, want Code) {
		next++
		c.Kind, c.Session, c.Epoch, c.Number = Acquire, id, 1, next
		w.do(c, want)
	}
	for n := range uint32(many) {
		add(Command{Key: "permits", Mode: ModePermits, Permits: 1, Of: many + n}, Granted)
		add(Command{Key: "readers", Mode: ModeIS}, Granted)
		add(Command{Key: fmt.Sprint("nested/", n), Owner: Number(n) * 3}, Granted) // a chain of owners
	}
	for range many {
		add(Command{Key: "permits"}, Waiting)
		add(Command{Key: "readers"}, Waiting)
	}
	for range maxAsked {
		add(Command{Key: "stays", Mode: ModeIS, Sticky: true}, Granted)
	}
	keys := severalKeys("several")
	add(Command{Key: keys[0], Keys: keys[1:], Delay: time.Hour}, Granted)
	for range 3 {
		add(Command{Key: keys[0], Keys: keys[1:]}, Waiting)
	}
	return w, id, next
}

func severalKeys(name string) (keys []string) {
	for i := range MaxKeys {
		keys = append(keys, fmt.Sprintf("%s/%03d", name, i))
	}
	return keys
}

// work is one row of the table of costs. The first commands of a row prepare its last one.
type work struct {
	name     string
	kind     Kind
	commands func(w *world, id SessionID, next Number) []Command
	// keys is the number of keys in the command or of the requests that it names or ends. Each
	// request has paid for its own visits with its Acquire.
	keys int
}

func one(commands ...Command) func(*world, SessionID, Number) []Command {
	return func(_ *world, id SessionID, next Number) []Command {
		for i := range commands {
			c := &commands[i]
			if c.Kind >= Attach && c.Kind <= Release || c.Kind == Cancel || c.Kind == Detach || c.Kind == InUse {
				c.Session, c.Epoch = id, c.Epoch+1
			}
			if c.Kind == Acquire && c.Number == 0 {
				c.Number = next + Number(1+i)
			}
			if c.Rules == 0 {
				c.Rules = 1
			}
		}
		return commands
	}
}

// costs is the table of costs: at least one row for every kind.
func costs() []work {
	keys := severalKeys("other")
	last := func(kind Kind, c Command) func(*world, SessionID, Number) []Command {
		return func(w *world, id SessionID, next Number) []Command { // of the hold of several keys
			e := w.m.sessions.byID[id].request(next - 3)
			c.Kind, c.Session, c.Epoch, c.Number = kind, id, 1, e.number
			return []Command{c}
		}
	}
	return []work{
		{"a stamp", Stamp, one(Command{Kind: Stamp, WallUnixMS: 1 << 41}), 0},
		{"the birth, again", Born, one(Command{Kind: Born}), 0},
		{"the end of the grace, again", EndGrace, one(Command{Kind: EndGrace}), 0},
		{"a raise", Raise, one(Command{Kind: Raise, Version: RulesVersion}), 0},
		{"a new session", Open, one(Command{Kind: Open, Nonce: Nonce{99}}), 0},
		{"leaving", Leaving, one(Command{Kind: Leaving}), 0},
		{"new budgets", Adopt, one(Command{Kind: Adopt, GroupBytes: 1 << 40}), 0},
		{"a move of the lead", Lead, one(Command{Kind: Lead, Record: []byte("ops"), Value: []byte("why")}), 0},
		{"IDs", Reserve, one(Command{Kind: Reserve, Count: MaxReserved}), 0},
		{"a plain acquire", Acquire, one(Command{Kind: Acquire, Key: "free"}), 0},
		{"an acquire behind many", Acquire, one(Command{Kind: Acquire, Key: "permits"}), 0},
		{"a request for permits behind many", Acquire, one(Command{Kind: Acquire, Key: "permits", Mode: ModePermits,
			Permits: 1, Of: 9}), 0},
		{"a request under a long chain of owners", Acquire, func(_ *world, id SessionID, next Number) []Command {
			return []Command{{Kind: Acquire, Session: id, Epoch: 1, Number: next + 1, Key: "permits", Owner: 9000}}
		}, 0},
		{"a request under an awaited owner", Acquire, one(Command{Kind: Acquire, Key: "permits", Owner: 2}), 0},
		{"a Try that asks stays", Acquire, one(Command{Kind: Acquire, Key: "stays", Try: true}), 0},
		{"a Try behind many", Acquire, one(Command{Kind: Acquire, Key: "readers", Try: true}), 0},
		{"many keys", Acquire, one(Command{Kind: Acquire, Key: keys[0], Keys: keys[1:]}), MaxKeys},
		{"a resumption of no hold", Acquire, one(Command{Kind: Acquire, Key: "readers", Token: 1}), 0},
		{"a resumption of many keys", Acquire, func(w *world, id SessionID, next Number) []Command {
			e := w.m.sessions.byID[id].request(next - 3)
			return []Command{{Kind: Acquire, Session: id, Epoch: 1, Number: next + 1, Key: e.lock.key, Token: e.token}}
		}, MaxKeys},
		{"a release of a permit", Release, one(Command{Kind: Release, Number: 1}), 0},
		{"a downgrade of many keys", Downgrade, last(Downgrade,
			Command{Modes: slices.Repeat([]Mode{ModeIS}, MaxKeys)}), MaxKeys},
		{"a cancel of many keys", Cancel, last(Cancel, Command{}), MaxKeys},
		{"a detach of many keys", Detach, last(Detach, Command{}), MaxKeys},
		{"an eviction of no hold", Evict, one(Command{Kind: Evict, Number: 1, Key: "stays", Token: 1}), 0},
		{"a put that no hold guards", Put, one(Command{Kind: Put, Key: "d", Nonce: Nonce{1}, Token: 1,
			Lock: "readers", Value: []byte("v")}), 0},
		{"a value of no hold", SetValue, one(
			Command{Kind: SetValue, Key: "readers", Token: 1, Seq: 1}), 0},
		{"an answer of a stay", InUse, func(w *world, id SessionID, next Number) []Command {
			stay := w.m.locks.byKey["stays"].first
			return []Command{
				{Kind: Acquire, Session: id, Epoch: 1, Number: next + 1, Key: "stays", Try: true},
				{Kind: InUse, Session: id, Epoch: 1, Number: stay.number, Token: stay.token + 1,
					Revision: w.m.rev + 1},
			}
		}, 0},
		{"a lapse of a caller of a stay", Lapse, func(w *world, id SessionID, next Number) []Command {
			stay, c := w.m.locks.byKey["stays"].first, Command{Kind: Lapse, Session: id, Epoch: 1}
			var all []Command
			for n := range Token(endsKept + 1) { // the last one meets a full log
				c.Number, c.Token, c.Value = stay.number, stay.token+1+n, []byte("gone")
				all = append(all, c)
			}
			return all
		}, 0},
		{"a refusal with a long proof", Refuse, func(w *world, id SessionID, next Number) []Command {
			c := Command{Kind: Refuse, Session: id, Number: next + 1}
			c.Proof = []Place{{Session: id, Number: next + 1}}
			for n := range Number(MaxProof - 1) {
				c.Proof = append(c.Proof, Place{Session: id, Number: n*3 + 3})
			}
			asked := Command{Kind: Acquire, Session: id, Epoch: 1, Number: next + 1, Key: "permits", Owner: 3}
			return []Command{asked, c}
		}, 0},
		// The session has placed each entry that these visit. The keeper bounds the rate of Attach.
		{"an attachment", Attach, func(w *world, id SessionID, next Number) []Command {
			return []Command{{Kind: Attach, Session: id, Epoch: 2, Number: next + 1, Nonce: Nonce{1},
				Live: []Range{{1, next}}}}
		}, 1 << 20},
		{"the end of a session", Close, one(Command{Kind: Close}), 1 << 20},
		{"an expiry", Expire, func(_ *world, id SessionID, _ Number) []Command {
			return []Command{{Kind: Expire, Session: id, Term: 1}}
		}, 1 << 20},
	}
}

// TestAnAttachGathersItsRequestsOnce checks that the list of all requests of a session does not
// grow step by step, because a guest can attach again and again.
func TestAnAttachGathersItsRequestsOnce(t *testing.T) {
	const held = 20_000
	w := newWorld(t)
	id := w.session(1)
	for n := range Number(held) {
		w.do(Command{Kind: Acquire, Session: id, Epoch: 1, Number: n + 1, Key: "k", Mode: ModeIS}, Granted)
	}
	epoch := Epoch(1)
	allocs := testing.AllocsPerRun(10, func() {
		epoch++
		r := w.do(Command{Kind: Attach, Session: id, Epoch: epoch, Number: held + 1, Nonce: Nonce{1},
			Live: []Range{{1, held}}}, Done)
		if len(r.States) != held {
			t.Fatalf("%d of %d requests are listed", len(r.States), held)
		}
	})
	if allocs > 10 {
		t.Errorf("an Attach allocates %v times", allocs)
	}
}

// TestTheWorkOfAQuestionIsBounded asks questions whose answers are far from where they begin. Each
// visits a bounded number of locks, sessions or events and then names the place where it goes on.
func TestTheWorkOfAQuestionIsBounded(t *testing.T) {
	const budget = 1000
	w, _, _ := crowdedGroup(t)
	start := w.m.Position()
	for n := range Number(3 * budget) {
		nonce := Nonce{7, byte(n), byte(n >> 8)}
		id := w.do(Command{Kind: Open, Nonce: nonce}, Done).Session
		w.do(Command{Kind: Attach, Session: id, Epoch: 1, Number: 1, Nonce: nonce}, Done)
		w.do(Command{Kind: Acquire, Session: id, Epoch: 1, Number: 1, Key: fmt.Sprint("others/", n)}, Granted)
	}
	last := fmt.Sprint("others/", 3*budget-1)
	for name, ask := range map[string]func(visited func()) (found bool){
		"locks": func(visited func()) (found bool) {
			for next, more := (Cursor{}), true; more; visited() {
				var all []LockInfo
				all, next, more = w.m.Walk(next, last, 10, 1, budget)
				found = found || len(all) == 1
			}
			return found
		},
		"locks after a lock that has ended": func(visited func()) (found bool) {
			for next, more := (Cursor{Key: "gone", Place: 1 << 62}), true; more; visited() {
				_, next, more = w.m.Walk(next, last, 10, 1, budget)
			}
			return true
		},
		"sessions": func(visited func()) (found bool) {
			for next, more := (SessionCursor{}), true; more; visited() {
				_, next, more = w.m.WalkSessions(next, 10*budget, budget)
			}
			return true
		},
		"events": func(visited func()) (found bool) {
			for at := start; at != w.m.Position(); visited() {
				events, upTo, ok := w.m.Since(at, NewPrefixes(last), 10)
				if !ok {
					t.Fatal("the events are no longer kept")
				}
				found, at = found || len(events) == 1, upTo
			}
			return found
		},
	} {
		w.m.visits = 0
		parts := 0
		if !ask(func() {
			if parts++; w.m.visits > eventsSearched+1 || parts > 100 {
				t.Fatalf("%s: part %d visits %d", name, parts, w.m.visits)
			}
			w.m.visits = 0
		}) || parts < 2 {
			t.Errorf("%s: not found in %d parts", name, parts)
		}
	}
}

// TestEveryCommandIsBounded checks that every kind has a row, and that the commands of the rows
// visit few entries of a crowded group, besides a few for each of their own keys.
func TestEveryCommandIsBounded(t *testing.T) {
	const perKey = 8
	seen := map[Kind]bool{}
	for _, row := range costs() {
		t.Run(row.name, func(t *testing.T) {
			seen[row.kind] = true
			w, id, next := crowdedGroup(t)
			for _, c := range row.commands(w, id, next) {
				w.m.visits = 0
				r := w.m.Apply(1, 1, encode(t, c))
				t.Logf("%v %v: %d visits", c.Kind, r.Code, w.m.visits)
				if r.Code == Malformed || r.Code == Unsupported || r.Code == Stale || r.Code == NoSession {
					t.Errorf("%v: %v", c.Kind, r.Code)
				}
				if w.m.visits > maxVisits+perKey*row.keys {
					t.Errorf("%v visits %d entries, at most %d and %d for each of %d keys may be", c.Kind, w.m.visits,
						maxVisits, perKey, row.keys)
				}
			}
			if err := w.m.Check(); err != nil {
				t.Fatal(err)
			}
		})
	}
	for kind := Stamp; kind.String() != Kind(0xff).String(); kind++ {
		if !seen[kind] {
			t.Errorf("%v has no row in the table of costs", kind)
		}
	}
}
