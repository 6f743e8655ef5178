package replica

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

type sessionMap map[lockfsm.SessionID]lockfsm.SessionInfo

func (s sessionMap) find(id lockfsm.SessionID) (lockfsm.SessionInfo, bool) {
	info, ok := s[id]
	return info, ok
}

func (s sessionMap) open(id lockfsm.SessionID) {
	s[id] = lockfsm.SessionInfo{ID: id, Record: fmt.Appendf(nil, `{"instance":"%v"}`, nodeidtest.ID(uint64(id))),
		Opener: lockfsm.Opener{Instance: nodeidtest.ID(uint64(id))}}
}

func (s sessionMap) all() (all []lockfsm.SessionInfo) {
	for _, id := range slices.Sorted(maps.Keys(s)) {
		all = append(all, s[id])
	}
	return all
}

func linkedToAll(nodeid.ID) bool { return true }

// look makes a pass in which every instance may vote, and returns the registered instances.
func (g *SessionIndex) look() []voters.Registered {
	var f voters.Facts
	g.Read(&f, linkedToAll)
	return f.Registered
}

// TestSessionIndexFollowsTheSessions checks that each pass finds the present sessions, however they
// are published. Each change must request a pass, because an idle log has no further turns.
func TestSessionIndexFollowsTheSessions(t *testing.T) {
	slow.UnderRace(t)
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var g SessionIndex
		now, next := sessionMap{}, lockfsm.SessionID(1)
		due := true // the beginning of a term as leader always requests a pass
		for range 200 {
			switch ids := slices.Sorted(maps.Keys(now)); {
			case random.IntN(40) == 0: // another term as leader begins
				g.Begin(now.all())
				due = true
			case len(ids) == 0 || random.IntN(3) == 0:
				now.open(next)
				g.Note(&lockfsm.Result{Kind: lockfsm.Open, Session: next})
				next++
			case random.IntN(2) == 0:
				id := ids[random.IntN(len(ids))]
				info := now[id]
				info.Leaving = true
				now[id] = info
				g.Note(&lockfsm.Result{Kind: lockfsm.Leaving, Session: id})
			default:
				id := ids[random.IntN(len(ids))]
				delete(now, id)
				g.Note(&lockfsm.Result{Kind: []lockfsm.Kind{lockfsm.Close, lockfsm.Expire}[random.IntN(2)],
					Session: id})
			}
			if random.IntN(3) == 0 {
				news := len(g.changed) > 0
				if due = g.Publish(now.find) || due; news && !due {
					t.Fatalf("seed %d: there is news, and no pass is requested", seed)
				}
			}
			if random.IntN(5) == 0 {
				g.look()
				due = false
			}
		}
		g.Publish(now.find)
		var got, want []string
		list := g.look()
		for _, r := range list {
			got = append(got, fmt.Sprint(r.Instance, r.Leaving))
		}
		for _, s := range now.all() {
			want = append(want, fmt.Sprint(nodeidtest.ID(uint64(s.ID)), s.Leaving))
		}
		if !slices.Equal(got, want) || len(g.census.instances) != len(want) || int(g.Members()) != len(want) {
			t.Fatalf("seed %d: the SessionIndex has %v, want %v", seed, got, want)
		}
	}
}

// TestSessionIndexCostsWhatChanges checks that publishing one change does not copy a hundred
// thousand sessions, which would delay the callers of locks.
func TestSessionIndexCostsWhatChanges(t *testing.T) {
	slow.UnderRace(t)
	var g SessionIndex
	now := sessionMap{}
	for id := range lockfsm.SessionID(100_000) {
		now.open(id + 1)
	}
	g.Begin(now.all())
	if list := g.look(); len(list) != len(now) {
		t.Fatalf("%d registered, want %d", len(list), len(now))
	}
	bytes := bytesPerRun(func() {
		g.wanted.Store(true)
		g.Note(&lockfsm.Result{Kind: lockfsm.Leaving, Session: 7})
		if !g.Publish(now.find) {
			t.Fatal("nothing was published")
		}
		g.news = g.news[:0] // discard the changes, as a pass does
	})
	if t.Logf("%d bytes allocated for one change beside 100,000 sessions", bytes); bytes > 4<<10 {
		t.Errorf("%d bytes for one change: it grows with the unchanged sessions", bytes)
	}
}

func bytesPerRun(f func()) uint64 {
	const runs = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs
}

// TestSessionIndexShowsWhatMattersForTheVoters checks that a pass of a group with founders reads
// the instances that may vote, the instances that have a replica, and their later incarnations.
func TestSessionIndexShowsWhatMattersForTheVoters(t *testing.T) {
	var g SessionIndex
	sessions := sessionMap{}
	open := func(id lockfsm.SessionID, name string) {
		sessions[id] = lockfsm.SessionInfo{
			ID: id, Record: fmt.Appendf(nil, `{"instance":"%v","name":%q}`, nodeidtest.ID(uint64(id)), name),
			Opener: lockfsm.Opener{Instance: nodeidtest.ID(uint64(id))},
		}
		g.Note(&lockfsm.Result{Kind: lockfsm.Open, Session: id})
	}
	end := func(id lockfsm.SessionID) {
		delete(sessions, id)
		g.Note(&lockfsm.Result{Kind: lockfsm.Close, Session: id})
	}
	look := func() (matter, all string) {
		g.Publish(sessions.find)
		f := voters.Facts{
			Settings: voters.Settings{Founders: []string{"a", "b", "c"}},
			Replicas: []voters.Replica{{Instance: nodeidtest.ID(1)}, {Instance: nodeidtest.ID(2)}},
		}
		g.Read(&f, linkedToAll)
		var every []uint64
		for r := range f.All() {
			every = append(every, r.Order)
			if !f.Knows(r.Instance) || !r.Reachable {
				t.Errorf("%v is listed and unknown, or not linked", r.Instance)
			}
		}
		slices.Sort(every)
		var some []uint64
		for _, r := range f.Registered {
			some = append(some, r.Order)
		}
		return fmt.Sprint(some), fmt.Sprint(every)
	}
	check := func(step, matter, all string) {
		t.Helper()
		if m, a := look(); m != matter || a != all {
			t.Errorf("%s: %s of %s, want %s of %s", step, m, a, matter, all)
		}
	}
	open(1, "a")
	open(2, "old") // a former founder that has a replica
	open(3, "x")
	open(4, "b")
	open(5, "y")
	check("at first", "[1 2 4]", "[1 2 3 4 5]")
	end(2)
	open(6, "old")
	check("a later incarnation of a replica's instance, after the session of the first", "[1 4 6]", "[1 3 4 5 6]")
	open(7, "x")
	end(4)
	check("others come, a founder goes", "[1 6]", "[1 3 5 6 7]")
	if names := g.ReplicaNames(); names[nodeidtest.ID(1)] != "a" || names[nodeidtest.ID(2)] != "old" {
		t.Errorf("the replicas have the names %v", names)
	}
}

// withIdle returns the SessionIndex of a leader with three founders and n sessions of instances
// that cannot vote.
func withIdle(n int) (*SessionIndex, sessionMap) {
	var g SessionIndex
	now := sessionMap{}
	named := groupOf(nil).Named()
	for id := range lockfsm.SessionID(n + 3) {
		r := Record{Instance: nodeidtest.ID(uint64(id + 1)).String(), Name: fmt.Sprint("idle-", id),
			Addr: "10.0.0.1:7947", Rules: 1, Settings: named}
		if id < 3 {
			r.Name = []string{"a", "b", "c"}[id]
		}
		b, _ := json.Marshal(r)
		now[id+1] = lockfsm.SessionInfo{ID: id + 1, TTL: time.Second, Record: b,
			Opener: lockfsm.Opener{Instance: nodeidtest.ID(uint64(id + 1))}}
	}
	g.Begin(now.all())
	return &g, now
}

// lookOnce changes one session and then runs a pass of the leader.
func (g *SessionIndex) lookOnce(reconciler *voters.Reconciler, now sessionMap) (voters.Step, agreement) {
	g.Note(&lockfsm.Result{Kind: lockfsm.Leaving, Session: 50})
	g.Publish(now.find)
	f := voters.Facts{Self: 1, Settings: voters.Settings{Voters: 3, Founders: []string{"a", "b", "c"}},
		Config: voters.Config{Voters: []uint64{1, 2, 3}}}
	for id := range uint64(3) {
		f.Replicas = append(f.Replicas, voters.Replica{ID: id + 1, Instance: nodeidtest.ID(id + 1), CaughtUp: true,
			Full: true, Settled: true, Active: true, Linked: true})
	}
	g.Read(&f, linkedToAll)
	return reconciler.Look(time.Minute, f, 9), agree(groupOf(nil), groupOf(nil), &g.census, g.census.longest())
}

// TestALookCostsTheSameBesideIdleSessions checks that the memory of a pass does not grow with the
// sessions of instances that cannot vote. The leader makes up to twenty passes a second.
func TestALookCostsTheSameBesideIdleSessions(t *testing.T) {
	cost := func(n int) uint64 {
		g, now := withIdle(n)
		var reconciler voters.Reconciler
		g.lookOnce(&reconciler, now)
		return bytesPerRun(func() { g.lookOnce(&reconciler, now) })
	}
	one, two := cost(5000), cost(10_000)
	if t.Logf("a pass allocates %d bytes beside 5,000 sessions, %d beside 10,000", one, two); two > one+one/4 ||
		two > 64<<10 {
		t.Errorf("a pass allocates %d bytes beside 5,000 sessions and %d beside 10,000", one, two)
	}
}

func BenchmarkLook(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, now := withIdle(n)
			var reconciler voters.Reconciler
			b.ReportAllocs()
			for b.Loop() {
				g.lookOnce(&reconciler, now)
			}
		})
	}
}

// TestAGuestDoesNotCount checks that a client that only takes locks gets no vote, and that only its
// TTL counts in settings agreement.
func TestAGuestDoesNotCount(t *testing.T) {
	var g SessionIndex
	g.Begin([]lockfsm.SessionInfo{
		{ID: 1, TTL: time.Second, Opener: lockfsm.Opener{Instance: nodeidtest.ID(7)},
			Record: []byte(`{"instance":"00000000000000000000000000000007","name":"a","rules":3}`)},
		{ID: 2, TTL: time.Minute,
			Record: []byte(`{"instance":"00000000000000000000000000000008","name":"cli","guest":true}`)},
	})
	list := g.look()
	counts := &g.census
	if len(list) != 1 || list[0].Instance != nodeidtest.ID(7) || counts.instances[nodeidtest.ID(7)] != 1 ||
		len(counts.contents) != 1 || counts.longest() != time.Minute {
		t.Errorf("%+v, %+v", list, counts)
	}
	if g.Members() != 2 {
		t.Errorf("%d members, want the instance and the program", g.Members())
	}
}

// TestOthersHaveAnOrder: equal sessions give equal facts, whatever the order of a map is. A run of
// a seed depends on it.
func TestOthersHaveAnOrder(t *testing.T) {
	var g SessionIndex
	now := sessionMap{}
	for id := range lockfsm.SessionID(50) {
		now.open(id + 1)
	}
	g.Begin(now.all())
	var f voters.Facts
	f.Settings.Founders = []string{"a founder that is not there"}
	g.Read(&f, linkedToAll)
	var order []uint64
	for r := range f.Others.All() {
		order = append(order, r.Order)
	}
	if len(order) != len(now) || !slices.IsSorted(order) {
		t.Errorf("%d of %d instances, in the order %v", len(order), len(now), order)
	}
}
