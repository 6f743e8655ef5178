package mortise

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"

	"github.com/mortise-lock/mortise/internal/nodeid"

	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
)

// somebody stands for the state machine: sessions that come, are leaving and go.
type somebody map[lockfsm.SessionID]lockfsm.SessionInfo

func (s somebody) find(id lockfsm.SessionID) (lockfsm.SessionInfo, bool) {
	info, ok := s[id]
	return info, ok
}

func (s somebody) open(id lockfsm.SessionID) {
	s[id] = lockfsm.SessionInfo{ID: id, Record: fmt.Appendf(nil, `{"instance":"%v"}`, nodeidtest.ID(uint64(id))), Opener: lockfsm.Opener{Instance: nodeidtest.ID(uint64(id))}}
}

func (s somebody) all() (all []lockfsm.SessionInfo) {
	for _, id := range slices.Sorted(maps.Keys(s)) {
		all = append(all, s[id])
	}
	return all
}

func linkedToAll(nodeid.ID) bool { return true }

// TestRegistryFollowsTheSessions: whatever happens between two looks, and in whatever turns it is handed over, the leader sees who has a
// session, and is called to look whenever there is something that it has not seen: an idle log has no later turn.
func TestRegistryFollowsTheSessions(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var g registry
		now, next := somebody{}, lockfsm.SessionID(1)
		due := true // a look is called for: at the beginning of a lead it always is
		for range 200 {
			switch ids := slices.Sorted(maps.Keys(now)); {
			case random.IntN(40) == 0: // another lead has begun
				g.begin(now.all())
				due = true
			case len(ids) == 0 || random.IntN(3) == 0:
				now.open(next)
				g.note(&lockfsm.Result{Kind: lockfsm.Open, Session: next})
				next++
			case random.IntN(2) == 0:
				id := ids[random.IntN(len(ids))]
				info := now[id]
				info.Leaving = true
				now[id] = info
				g.note(&lockfsm.Result{Kind: lockfsm.Leaving, Session: id})
			default:
				id := ids[random.IntN(len(ids))]
				delete(now, id)
				g.note(&lockfsm.Result{Kind: []lockfsm.Kind{lockfsm.Close, lockfsm.Expire}[random.IntN(2)], Session: id})
			}
			if random.IntN(3) == 0 {
				news := len(g.changed) > 0
				if due = g.publish(now.find) || due; news && !due {
					t.Fatalf("seed %d: there is something new, and nobody looks", seed)
				}
			}
			if random.IntN(5) == 0 {
				g.read(linkedToAll)
				due = false
			}
		}
		g.publish(now.find)
		var got, want []string
		list, records, _ := g.read(linkedToAll)
		for _, r := range list {
			got = append(got, fmt.Sprint(r.Instance, r.Leaving))
		}
		for _, s := range now.all() {
			want = append(want, fmt.Sprint(nodeidtest.ID(uint64(s.ID)), s.Leaving))
		}
		if !slices.Equal(got, want) || len(records) != len(want) {
			t.Fatalf("seed %d: the registry has %v, want %v", seed, got, want)
		}
	}
}

// TestRegistryCostsWhatChanges: who waits for a lock does not wait for a list of a hundred thousand sessions because one has changed.
func TestRegistryCostsWhatChanges(t *testing.T) {
	var g registry
	now := somebody{}
	for id := range lockfsm.SessionID(100_000) {
		now.open(id + 1)
	}
	g.begin(now.all())
	if list, _, _ := g.read(linkedToAll); len(list) != len(now) {
		t.Fatalf("%d registered, want %d", len(list), len(now))
	}
	bytes := bytesPerRun(func() {
		g.wanted.Store(true)
		g.note(&lockfsm.Result{Kind: lockfsm.Leaving, Session: 7})
		if !g.publish(now.find) {
			t.Fatal("nothing was handed over")
		}
		g.news = g.news[:0] // as if they were read
	})
	if t.Logf("%d bytes allocated for one change beside 100,000 sessions", bytes); bytes > 4<<10 {
		t.Errorf("%d bytes for one change: it grows with the sessions at rest", bytes)
	}
}

// bytesPerRun returns how much f allocates, the mean of a thousand runs.
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
