package lockfsm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func openSessions(t testing.TB, n int) (*world, []SessionID) {
	c := smallCharter()
	c.Limits.Sessions = 20_000
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, m}
	w.do(Command{Kind: Born}, Done)
	ids := make([]SessionID, n)
	for i := range ids {
		ids[i] = w.another(i)
	}
	return w, ids
}

// This method opens a session whose nonce contains i. The IDs of two sessions are not adjacent.
func (w *world) another(i int) SessionID {
	nonce := Nonce{1, byte(i), byte(i >> 8)}
	id := w.do(Command{Kind: Open, Nonce: nonce, Record: []byte("record")}, Done).Session
	w.do(Command{Kind: Attach, Session: id, Epoch: 1, Number: 1, Nonce: nonce}, Done)
	return id
}

// TestWalkSessionsListsEachOnce checks that a session that exists during the whole walk is listed
// once and in order. Between two pages, sessions are opened and ended, among them the last listed
// session.
func TestWalkSessionsListsEachOnce(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		w, ids := openSessions(t, 60)
		ended := map[SessionID]bool{}
		end := func(id SessionID) {
			if !ended[id] {
				ended[id] = true
				w.do(Command{Kind: Close, Session: id, Epoch: 1}, Done)
			}
		}
		var got []SessionID
		var c SessionCursor
		pages := 0
		for more := true; more; pages++ {
			var page []SessionInfo
			most := 1 + random.IntN(9)
			if page, c, more = w.m.WalkSessions(c, most, 20); len(page) > most {
				t.Fatalf("seed %d: a page of %d, at most %d", seed, len(page), most)
			}
			for _, s := range page {
				got = append(got, s.ID)
				if s.Nonce != (Nonce{}) {
					t.Fatal("a nonce is shown")
				}
			}
			if len(page) > 0 && random.IntN(2) == 0 {
				end(page[len(page)-1].ID)
			}
			end(ids[random.IntN(len(ids))])
			if pages < 40 && random.IntN(3) == 0 {
				w.another(1000 + pages)
			}
			if pages > 1000 {
				t.Fatalf("seed %d: the walk does not end", seed)
			}
		}
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("seed %d: %v: not in order, or one of them twice", seed, got)
		}
		for _, id := range ids {
			if !ended[id] && !slices.Contains(got, id) {
				t.Fatalf("seed %d: session %d has lived throughout and is not listed", seed, id)
			}
		}
	}
}

// TestWalkSessionsKeepsToItsBudget checks that the number of sessions visited for a page does not
// exceed the budget, even if the session of the cursor has ended.
func TestWalkSessionsKeepsToItsBudget(t *testing.T) {
	w, ids := openSessions(t, 1000)
	c := SessionCursor{At: ids[899] + 1, Past: ids[899]} // no session has the ID in At
	for pages := 0; ; pages++ {
		page, next, more := w.m.WalkSessions(c, 100, 200)
		if len(page) > 0 {
			if pages != 4 || page[0].ID != ids[900] {
				t.Errorf("after %d pages it lists %d first, want %d", pages, page[0].ID, ids[900])
			}
			return
		}
		if c = next; !more {
			t.Fatal("the walk ends before the sessions behind the cursor")
		}
	}
}

// BenchmarkSessionsPage measures the time of one page, with few and with many sessions. Both should
// take the same time.
func BenchmarkSessionsPage(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		w, ids := openSessions(b, n)
		middle := ids[n/2-1]
		for name, c := range map[string]SessionCursor{
			"first": {}, "half": {At: middle, Past: middle}, "ended": {At: middle + 1, Past: middle},
		} {
			b.Run(fmt.Sprint(n, "/", name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w.m.WalkSessions(c, 100, 1000)
				}
			})
		}
	}
}
