package shard

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// town is a group and the plans of its members. Each plan hears the events late, in order.
type town struct {
	r      *rand.Rand
	now    time.Time
	count  int
	token  mortise.Token
	log    []mortise.Event
	locks  map[int]string // the member that holds the lock of a shard
	plans  map[string]*plan
	heard  map[string]int
	keys   map[string]mortise.Token // of the presences
	weight map[string]int
	moves  int
}

func newTown(seed uint64) *town {
	r := rand.New(rand.NewPCG(seed, 2))
	return &town{r: r, count: 1 + r.IntN(40), locks: map[int]string{}, plans: map[string]*plan{},
		heard: map[string]int{}, keys: map[string]mortise.Token{}, weight: map[string]int{}}
}

func (w *town) say(what mortise.EventKind, key, value string, token mortise.Token) {
	w.log = append(w.log, mortise.Event{What: what, Key: key, Value: value, Token: token})
}

func (w *town) join(id string) {
	w.token++
	w.plans[id] = newPlan("n", w.count, w.r.IntN(w.count), id)
	w.heard[id], w.keys[id], w.weight[id] = 0, w.token, 1+w.r.IntN(3)
	w.say(mortise.EventHeld, memberName("n")+"/"+id, memberValue(w.weight[id], id), w.token)
}

func (w *town) crash(id string) {
	w.say(mortise.EventFreed, memberName("n")+"/"+id, "", w.keys[id])
	delete(w.keys, id)
	for index := range w.count {
		if w.locks[index] == id {
			w.free(index)
		}
	}
	delete(w.plans, id)
}

func (w *town) free(index int) {
	delete(w.locks, index)
	token := mortise.Token(0)
	for _, e := range w.log {
		if e.Key == shardKey("n", index) && e.What == mortise.EventHeld {
			token = e.Token
		}
	}
	w.say(mortise.EventFreed, shardKey("n", index), "", token)
}

// turn lets one member hear some events and carry out its plan.
func (w *town) turn(t *testing.T, id string, events int) {
	p := w.plans[id]
	for ; events > 0 && w.heard[id] < len(w.log); events-- {
		p.apply(&w.log[w.heard[id]])
		w.heard[id]++
	}
	end, begin := p.next(w.now)
	for _, index := range end {
		if w.locks[index] != id {
			t.Fatalf("%s ends shard %d of %q", id, index, w.locks[index])
		}
		w.free(index)
		p.ended(index, time.Time{})
		w.moves++
	}
	for _, index := range begin {
		if w.locks[index] != "" { // another was faster
			p.ended(index, time.Time{})
			continue
		}
		w.token++
		w.locks[index] = id
		w.say(mortise.EventHeld, shardKey("n", index), "", w.token)
	}
}

func (w *town) ids() []string { return slices.Sorted(maps.Keys(w.plans)) }

func (w *town) settle(t *testing.T) {
	for range 20 {
		for _, id := range w.ids() {
			w.turn(t, id, len(w.log))
		}
	}
}

// TestAnEarlierOwnerEndsNothing checks that the end of an earlier hold does not free a shard.
func TestAnEarlierOwnerEndsNothing(t *testing.T) {
	p := newPlan("n", 1, 0, "a")
	p.apply(&mortise.Event{What: mortise.EventHeld, Key: memberName("n") + "/a", Value: memberValue(1, "a"), Token: 1})
	p.apply(&mortise.Event{What: mortise.EventHeld, Key: shardKey("n", 0), Token: 3})
	p.apply(&mortise.Event{What: mortise.EventFreed, Key: shardKey("n", 0), Token: 2})
	if _, begin := p.next(time.Time{}); len(begin) > 0 {
		t.Errorf("the shards %v begin, although another instance owns them", begin)
	}
	p.apply(&mortise.Event{What: mortise.EventFreed, Key: shardKey("n", 0), Token: 3})
	if _, begin := p.next(time.Time{}); len(begin) != 1 {
		t.Error("the free shard does not begin")
	}
}

// TestPlansAgree lets random members join and crash. Afterwards each owns its quota, and no more
// shards have moved than the quotas demand.
func TestPlansAgree(t *testing.T) {
	for seed := range uint64(150) {
		w := newTown(seed)
		w.join("first")
		w.settle(t)
		for step := range 12 {
			before := w.owned()
			w.moves = 0
			if id := fmt.Sprint("m", step); w.r.IntN(3) > 0 || len(w.plans) < 2 {
				w.join(id)
			} else {
				for _, id := range w.ids() {
					w.crash(id)
					delete(before, id)
					break
				}
			}
			for range w.r.IntN(40) { // each member hears a part
				for _, id := range w.ids() {
					w.turn(t, id, w.r.IntN(4))
				}
			}
			w.settle(t)
			var all []member
			for _, id := range w.ids() {
				all = append(all, member{id, w.weight[id], w.keys[id]})
			}
			quota, owned, needed := quotas(all, w.count), w.owned(), 0
			for _, id := range w.ids() {
				if owned[id] != quota[id] {
					t.Fatalf("seed %d, step %d: %s owns %d of %d, its quota is %d", seed, step, id, owned[id], w.count,
						quota[id])
				}
				needed += max(0, before[id]-quota[id])
			}
			if w.moves != needed {
				t.Fatalf("seed %d, step %d: %d shards were given up, %d are needed", seed, step, w.moves, needed)
			}
		}
	}
}

func (w *town) owned() map[string]int {
	owned := map[string]int{}
	for _, id := range w.locks {
		owned[id]++
	}
	return owned
}
