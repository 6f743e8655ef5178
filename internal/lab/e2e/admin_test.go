package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// adminProgram is the node ID of the program in whose name these tests make admin calls.
var adminProgram = nodeidtest.ID(77)

func (f *fleet) program(i int) query.AdminClient {
	return query.NewAdminClient(f.nodes[i].Services.As(transport.Identity{Instance: adminProgram,
		Peer: capability.Peer{Tier: capability.Root}}))
}

// asks makes an admin call. It returns the answer or the failure that the instance reports.
func asks[C, Q, A any](t *testing.T, client C, method queries.Method[C, Q, A], q *Q) (*A, *queries.Failed) {
	t.Helper()
	a, err := queries.Ask(brief(t), client, method, q)
	failed, ok := errors.AsType[*queries.Failed](err)
	if err != nil && !ok {
		t.Fatal(err)
	}
	return a, failed
}

func keysOf(t *testing.T, a *query.KeysAnswer, failed *queries.Failed) (keys []mortise.KeyInfo) {
	t.Helper()
	if err := json.Unmarshal(a.GetKeys(), &keys); err != nil || failed != nil {
		t.Fatalf("%+v, %v, %v", a, failed, err)
	}
	return keys
}

func TestAnyInstanceAnswersAGuest(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4)
		var locks []*mortise.Lock
		for i := range 250 {
			locks = append(locks, f.lock(i%4, fmt.Sprintf("k/%d", i)))
		}
		for i := range f.nodes {
			p, keys, q := f.program(i), 0, &query.ListRequest{Prefix: []byte("k/")}
			for more := true; more; {
				a, failed := asks(t, p, query.AdminClient.List, q)
				keys += len(keysOf(t, a, failed))
				q.Next, more = a.Next, a.More
			}
			if keys != len(locks) {
				t.Errorf("node %d lists %d keys", i, keys)
			}
			seven, failed := asks(t, p, query.AdminClient.Peek, &query.KeyRequest{Key: []byte("k/7")})
			if got := keysOf(t, seven, failed); len(got) != 1 || got[0].Queue[0].Token != locks[7].Token() ||
				got[0].Queue[0].Holder != "node-3" {
				t.Errorf("node %d: %+v", i, got)
			}
			var s mortise.Status
			here, _ := asks(t, p, query.AdminClient.Here, &query.HereRequest{})
			if err := json.Unmarshal(here.Status, &s); err != nil || s.Name != f.nodes[i].config.Name ||
				s.Leader == "" || here.Durable || here.Leaderless != 0 {
				t.Errorf("node %d says of itself %+v, %v", i, here, err)
			}
			var h mortise.Health
			health, _ := asks(t, p, query.AdminClient.Health, &query.StateRequest{})
			if err := json.Unmarshal(health.GetHealth(), &h); err != nil || h.Eligible != 4 {
				t.Errorf("node %d: %+v, %v", i, h, err)
			}
		}
		// Ending a hold requires a name, a valid reason, and the token.
		q := &query.EvictRequest{Key: []byte("k/7"), Token: uint64(locks[7].Token()), By: []byte("operator"),
			Reason: []byte("a test")}
		for what, wrong := range map[string]*query.EvictRequest{
			"no name":           {Key: q.Key, Token: q.Token},
			"a name of no text": {Key: q.Key, Token: q.Token, By: []byte("a\x00")},
			"no token":          {Key: q.Key, By: []byte("x")},
			"a long reason": {Key: q.Key, Token: q.Token, By: []byte("x"),
				Reason: bytes.Repeat([]byte("x"), lockfsm.MaxValueBytes+1)},
		} {
			if a, failed := asks(t, f.program(1), query.AdminClient.Evict, wrong); failed == nil ||
				failed.Kind != query.Failure_WRONG || failed.Error() == "" {
				t.Errorf("%s: %+v, %v", what, a, failed)
			}
		}
		if _, failed := asks(t, f.program(1), query.AdminClient.Recover,
			&query.RecoverRequest{Group: "x"}); failed == nil || failed.Kind != query.Failure_WRONG {
			t.Errorf("no group: %v", failed)
		}
		if locks[7].Err() != nil {
			t.Fatal("a refused question has ended a hold")
		}
		if a, failed := asks(t, f.program(f.follower()), query.AdminClient.Evict, q); failed != nil || !a.Held {
			t.Fatalf("%+v, %v", a, failed)
		}
		<-locks[7].Done()
		proven := "operator (instance " + adminProgram.String() + ")" // the program has proved only its ID
		if err := locks[7].Err(); !strings.Contains(fmt.Sprint(err), proven) ||
			!strings.Contains(fmt.Sprint(err), "a test") {
			t.Error(err)
		}
		if a, failed := asks(t, f.program(0), query.AdminClient.Evict, q); failed != nil || a.Held {
			t.Error("a hold was ended twice")
		}
		eventsIn := func(a *query.EventsAnswer, failed *queries.Failed) (events []mortise.Event) {
			if err := json.Unmarshal(a.GetEvents(), &events); err != nil || failed != nil {
				t.Fatalf("%+v, %v, %v", a, failed, err)
			}
			return events
		}
		watch := func(i int, prefix string, after uint64) (*query.EventsAnswer, []mortise.Event) {
			a, failed := asks(t, f.program(i), query.AdminClient.Watch, &query.WatchRequest{Prefixes: [][]byte{[]byte(prefix)},
				After: after})
			return a, eventsIn(a, failed)
		}
		for i := range f.nodes {
			a, events := watch(i, "k/", 0)
			if len(events) != len(locks)+1 || events[0].Kind != mortise.EventReset ||
				events[len(events)-1].Kind != mortise.EventCurrent || a.Position == 0 {
				t.Fatalf("node %d begins with %d events, the first of them %+v", i, len(events), events[0])
			}
			unlock(t, f.lock(i, "k/new"))
			_, events = watch(i, "k/", a.Position)
			if len(events) == 0 || events[0].Kind != mortise.EventHeld || events[0].Key != "k/new" {
				t.Errorf("node %d goes on with %+v", i, events)
			}
			last, nothing := watch(i, "none/", a.Position)
			if len(nothing) != 0 || last.Position <= a.Position || last.Missed {
				t.Errorf("node %d: %+v", i, last)
			}
			if a, _ := watch(i, "k/", 1); !a.Missed {
				t.Errorf("node %d says nothing of what it does not know any more: %+v", i, a)
			}
			ends, failed := asks(t, f.program(i), query.AdminClient.Audit, &query.StateRequest{})
			if all := eventsIn(ends, failed); len(all) != 1 || all[0].Reason != "a test" {
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

func TestAGuestSeesTheSessions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		holds := f.acquire(0, mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}}})
		other := f.lock(0, "c")
		waits := f.later(1, mortise.Request{Key: "b", Also: []mortise.Part{{Key: "c"}, {Key: "d"}}})
		for i := range f.nodes {
			a, failed := asks(t, f.program(i), query.AdminClient.Sessions, &query.PageRequest{})
			var all []mortise.SessionInfo
			if err := json.Unmarshal(a.GetSessions(), &all); err != nil || failed != nil || a.More || len(all) != 3 {
				t.Fatalf("node %d: %+v, %v, %v", i, a, failed, err)
			}
			for _, s := range all {
				want := map[string][2]int{"node-0": {3, 0}, "node-1": {0, 3}}[s.Name]
				if s.Held != want[0] || s.Waiting != want[1] || s.Since.IsZero() || s.Since.After(time.Now()) ||
					s.Session == "" {
					t.Errorf("node %d: %+v", i, s)
				}
			}
			rest, _ := asks(t, f.program(i), query.AdminClient.Sessions, &query.PageRequest{From: a.From})
			if string(rest.GetSessions()) != "[]" {
				t.Errorf("node %d: behind the last is %+v", i, rest)
			}
		}
		unlock(t, holds)
		unlock(t, other)
		unlock(t, comes(t, "node 1", waits))
		f.nothingLeft()
	})
}

// TestAGuestPutsData checks that a repeated call takes effect once.
func TestAGuestPutsData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		nonce := func(n byte) []byte { return append(make([]byte, 15), n) }
		put := func(i int, q *query.PutRequest) (*query.PutAnswer, *queries.Failed) {
			return asks(t, f.program(i), query.AdminClient.Put, q)
		}
		q := &query.PutRequest{Key: []byte("k"), Data: []byte("one"), Nonce: nonce(1)}
		first, failed := put(0, q)
		if failed != nil || first.Revision == 0 {
			t.Fatalf("%+v, %v", first, failed)
		}
		if again, failed := put(1, q); failed != nil || again.Revision != first.Revision {
			t.Errorf("the question is repeated: %+v, was %+v, %v", again, first, failed)
		}
		q.Nonce = nonce(2)
		if a, failed := put(2, q); failed == nil || failed.Kind != query.Failure_CONFLICT {
			t.Errorf("another one that has seen no data: %+v, %v", a, failed)
		}
		peeked, failed := asks(t, f.program(1), query.AdminClient.Peek, &query.KeyRequest{Key: []byte("k")})
		if got := keysOf(t, peeked, failed); len(got) != 1 || string(got[0].Data) != "one" ||
			got[0].Revision != first.Revision {
			t.Errorf("%+v", got)
		}
		for what, wrong := range map[string]*query.PutRequest{
			"no nonce":      {Key: []byte("k"), Data: []byte("x")},
			"a short nonce": {Key: []byte("k"), Data: []byte("x"), Nonce: nonce(3)[1:]},
			"too long":      {Key: []byte("k"), Data: make([]byte, lockfsm.MaxDataBytes+1), Nonce: nonce(3)},
			"a bad key":     {Key: []byte("\n"), Data: []byte("x"), Nonce: nonce(3)},
			"no UTF-8":      {Key: []byte("\xff"), Data: []byte("x"), Nonce: nonce(3)},
		} {
			for i := range f.nodes {
				if a, failed := put(i, wrong); failed == nil || failed.Kind != query.Failure_WRONG ||
					failed.Error() == "" {
					t.Errorf("node %d, %s: %+v, %v", i, what, a, failed)
				}
			}
		}
		if gone, failed := put(2, &query.PutRequest{Key: []byte("k"), Revision: first.Revision,
			Nonce: nonce(4)}); failed != nil || gone.Revision != 0 {
			t.Errorf("taken away: %+v, %v", gone, failed)
		}
		f.nothingLeft()
	})
}

// TestAGuestIsToldThatThereIsNoLeader checks that calls that need no leader are answered, and that
// all other calls fail within their time limits.
func TestAGuestIsToldThatThereIsNoLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		f.crash(1)
		f.crash(2)
		time.Sleep(20 * time.Second)
		var s mortise.Status
		p := f.program(0)
		here, _ := asks(t, p, query.AdminClient.Here, &query.HereRequest{})
		if err := json.Unmarshal(here.Status, &s); err != nil || s.Leader != "" ||
			here.Leaderless < int64(15*time.Second) || here.Leaderless > int64(21*time.Second) {
			t.Errorf("leader %q, none for %v, %v", s.Leader, time.Duration(here.Leaderless), err)
		}
		began := time.Now()
		_, list := asks(t, p, query.AdminClient.List, &query.ListRequest{})
		_, peek := asks(t, p, query.AdminClient.Peek, &query.KeyRequest{Key: []byte("k")})
		_, health := asks(t, p, query.AdminClient.Health, &query.StateRequest{})
		for what, failed := range map[string]*queries.Failed{"list": list, "peek": peek, "health": health} {
			if failed == nil || failed.Kind != query.Failure_NOT_READY || failed.Error() == "" {
				t.Errorf("%s: %v", what, failed)
			}
		}
		if took := time.Since(began); took > 3*3*time.Second {
			t.Errorf("three answers took %v", took)
		}
	})
}
