package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/desk"
	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
)

// deskProgram is the ID of the program that desks speaks for.
var deskProgram = nodeidtest.ID(77)

// desks asks a node as a program does that is no instance.
func (f *fleet) desks(i int, q desk.Question) desk.Answer {
	f.t.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		f.t.Fatal(err)
	}
	said, err := f.nodes[i].Handler.Ask(brief(f.t), transport.Identity{Instance: deskProgram, Peer: capability.Peer{Tier: capability.Root}}, append([]byte(desk.Mark), body...))
	if err != nil {
		f.t.Fatal(err)
	}
	var a desk.Answer
	if err := json.Unmarshal(said, &a); err != nil {
		f.t.Fatal(err)
	}
	return a
}

// keysOf reads the keys of an answer.
func keysOf(t *testing.T, a desk.Answer) (keys []mortise.KeyInfo) {
	t.Helper()
	if err := json.Unmarshal(a.Keys, &keys); err != nil || a.Error != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	return keys
}

// TestAnyInstanceAnswersAGuest: the leader, a voter, and one that does not vote say the same of what is held.
func TestAnyInstanceAnswersAGuest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4)
		var locks []*mortise.Lock
		for i := range 250 {
			locks = append(locks, f.lock(i%4, fmt.Sprintf("k/%d", i)))
		}
		for i := range f.nodes {
			keys, q := 0, desk.Question{Op: desk.List, Key: "k/"}
			for more := true; more; {
				a := f.desks(i, q)
				keys += len(keysOf(t, a))
				q.Next, more = a.Next, a.More
			}
			if keys != len(locks) {
				t.Errorf("node %d lists %d keys", i, keys)
			}
			if got := keysOf(t, f.desks(i, desk.Question{Op: desk.Peek, Key: "k/7"})); len(got) != 1 || got[0].Queue[0].Token != locks[7].Token() || got[0].Queue[0].Holder != "node-3" {
				t.Errorf("node %d: %+v", i, got)
			}
			var s mortise.Status
			here := f.desks(i, desk.Question{Op: desk.Here})
			if err := json.Unmarshal(here.Status, &s); err != nil || s.Name != f.nodes[i].config.Name || s.Leader == "" || here.Durable || here.Leaderless != 0 {
				t.Errorf("node %d says of itself %+v, %v", i, here, err)
			}
			var h mortise.Health
			if err := json.Unmarshal(f.desks(i, desk.Question{Op: desk.Health}).Health, &h); err != nil || h.Eligible != 4 {
				t.Errorf("node %d: %+v, %v", i, h, err)
			}
		}
		// To end a hold needs a name, a reason that fits, and the token.
		q := desk.Question{Op: desk.Evict, Key: "k/7", Token: uint64(locks[7].Token()), By: "somebody", Reason: "a test"}
		for what, wrong := range map[string]desk.Question{
			"no name":           {Op: desk.Evict, Key: q.Key, Token: q.Token},
			"a name of no text": {Op: desk.Evict, Key: q.Key, Token: q.Token, By: "a\x00"},
			"no token":          {Op: desk.Evict, Key: q.Key, By: "x"},
			"a long reason":     {Op: desk.Evict, Key: q.Key, Token: q.Token, By: "x", Reason: strings.Repeat("x", lockfsm.MaxValueBytes+1)},
			"nothing known":     {Op: "dance"},
			"no group":          {Op: desk.Recover, Group: "x"},
		} {
			if a := f.desks(1, wrong); a.Kind != desk.Wrong || a.Error == "" || a.Ended {
				t.Errorf("%s: %+v", what, a)
			}
		}
		if locks[7].Err() != nil {
			t.Fatal("a refused question has ended a hold")
		}
		if a := f.desks(f.follower(), q); !a.Ended || a.Error != "" {
			t.Fatalf("%+v", a)
		}
		<-locks[7].Done()
		proven := "somebody (instance " + deskProgram.String() + ")" // the name is its own word, the ID is not
		if err := locks[7].Err(); !strings.Contains(fmt.Sprint(err), proven) || !strings.Contains(fmt.Sprint(err), "a test") {
			t.Error(err)
		}
		if a := f.desks(0, q); a.Ended {
			t.Error("a hold was ended twice")
		}
		eventsOf := func(a desk.Answer) (events []mortise.Event) {
			if err := json.Unmarshal(a.Events, &events); err != nil || a.Error != "" {
				t.Fatalf("%+v, %v", a, err)
			}
			return events
		}
		for i := range f.nodes { // what there is now, then what happens, then nothing for a while
			a := f.desks(i, desk.Question{Op: desk.Watch, Key: "k/"})
			if events := eventsOf(a); len(events) != len(locks)+1 || events[0].What != mortise.EventReset || events[len(events)-1].What != mortise.EventCurrent || a.Position == 0 {
				t.Fatalf("node %d begins with %d events, the first of them %+v", i, len(events), events[0])
			}
			unlock(t, f.lock(i, "k/new"))
			events := eventsOf(f.desks(i, desk.Question{Op: desk.Watch, Key: "k/", After: a.Position}))
			if len(events) == 0 || events[0].What != mortise.EventHeld || events[0].Key != "k/new" {
				t.Errorf("node %d goes on with %+v", i, events)
			}
			last := f.desks(i, desk.Question{Op: desk.Watch, Key: "none/", After: a.Position})
			if len(eventsOf(last)) != 0 || last.Position <= a.Position || last.Missed {
				t.Errorf("node %d: %+v", i, last)
			}
			if a := f.desks(i, desk.Question{Op: desk.Watch, Key: "k/", After: 1}); !a.Missed {
				t.Errorf("node %d says nothing of what it does not know any more: %+v", i, a)
			}
			if all := eventsOf(f.desks(i, desk.Question{Op: desk.Audit})); len(all) != 1 || all[0].Reason != "a test" {
				t.Errorf("node %d: %+v", i, all)
			}
		}
		for i, l := range locks {
			if i != 7 {
				unlock(t, l)
			}
		}
		f.nothingLeft()
	})
}

// TestAGuestSeesTheSessions: each with what it holds and waits for, page by page, from any instance.
func TestAGuestSeesTheSessions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		holds := f.acquire(0, mortise.Request{Keys: []string{"a", "b"}})
		other := f.lock(0, "c")
		waits := f.later(1, mortise.Request{Keys: []string{"b", "c", "d"}})
		for i := range f.nodes {
			a := f.desks(i, desk.Question{Op: desk.Sessions})
			var all []mortise.SessionInfo
			if err := json.Unmarshal(a.Sessions, &all); err != nil || a.Error != "" || a.More || len(all) != 3 {
				t.Fatalf("node %d: %+v, %v", i, a, err)
			}
			for _, s := range all {
				want := map[string][2]int{"node-0": {3, 0}, "node-1": {0, 3}}[s.Holder]
				if s.Held != want[0] || s.Waiting != want[1] || s.Since.IsZero() || s.Since.After(time.Now()) || s.Session == "" {
					t.Errorf("node %d: %+v", i, s)
				}
			}
			rest := f.desks(i, desk.Question{Op: desk.Sessions, From: a.From})
			if string(rest.Sessions) != "[]" {
				t.Errorf("node %d: behind the last is %+v", i, rest)
			}
		}
		unlock(t, holds)
		unlock(t, other)
		unlock(t, comes(t, "node 1", waits))
		f.nothingLeft()
	})
}

// TestAGuestPutsData: at the revision that it has seen, and a question that it repeats takes effect once.
func TestAGuestPutsData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		q := desk.Question{Op: desk.Put, Key: "k", Data: []byte("one"), Nonce: lockfsm.Nonce{1}}
		first := f.desks(0, q)
		if first.Error != "" || first.Revision == 0 {
			t.Fatalf("%+v", first)
		}
		if again := f.desks(1, q); again.Error != "" || again.Revision != first.Revision {
			t.Errorf("the question is repeated: %+v, was %+v", again, first)
		}
		q.Nonce = lockfsm.Nonce{2}
		if a := f.desks(2, q); a.Kind != desk.Conflict || a.Revision != 0 {
			t.Errorf("another one that has seen no data: %+v", a)
		}
		if got := keysOf(t, f.desks(1, desk.Question{Op: desk.Peek, Key: "k"})); len(got) != 1 || string(got[0].Data) != "one" || got[0].Revision != first.Revision {
			t.Errorf("%+v", got)
		}
		for what, wrong := range map[string]desk.Question{
			"no nonce":  {Op: desk.Put, Key: "k", Data: []byte("x")},
			"too long":  {Op: desk.Put, Key: "k", Data: make([]byte, lockfsm.MaxDataBytes+1), Nonce: lockfsm.Nonce{3}},
			"a bad key": {Op: desk.Put, Key: "\n", Data: []byte("x"), Nonce: lockfsm.Nonce{3}},
		} {
			if a := f.desks(0, wrong); a.Kind != desk.Wrong || a.Error == "" {
				t.Errorf("%s: %+v", what, a)
			}
		}
		gone := f.desks(2, desk.Question{Op: desk.Put, Key: "k", Revision: first.Revision, Nonce: lockfsm.Nonce{4}})
		if gone.Error != "" || gone.Revision != 0 {
			t.Errorf("taken away: %+v", gone)
		}
		f.nothingLeft()
	})
}

// TestAGuestIsToldThatNobodyLeads: what needs no leader is answered, with how long there has been none; what needs one is refused in time.
func TestAGuestIsToldThatNobodyLeads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		f.crash(1)
		f.crash(2)
		time.Sleep(20 * time.Second)
		var s mortise.Status
		here := f.desks(0, desk.Question{Op: desk.Here})
		if err := json.Unmarshal(here.Status, &s); err != nil || s.Leader != "" || here.Leaderless < int64(15*time.Second) || here.Leaderless > int64(21*time.Second) {
			t.Errorf("leader %q, none for %v, %v", s.Leader, time.Duration(here.Leaderless), err)
		}
		began := time.Now()
		for _, op := range []desk.Op{desk.List, desk.Peek, desk.Health} {
			if a := f.desks(0, desk.Question{Op: op, Key: "k"}); a.Kind != desk.NotReady || a.Error == "" {
				t.Errorf("%s: %+v", op, a)
			}
		}
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("three answers took %v", took)
		}
	})
}
