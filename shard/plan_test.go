package shard

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// town is a group and the plans of its members. Each plan hears the events late, in order.
type town struct {
	r      *rand.Rand
	now    time.Time
	count  int            // the highest of the members
	counts map[string]int // by member
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
		counts: map[string]int{}, heard: map[string]int{}, keys: map[string]mortise.Token{}, weight: map[string]int{}}
}

func (w *town) say(what mortise.EventKind, key, value string, token mortise.Token) {
	w.log = append(w.log, mortise.Event{Kind: what, Part: mortise.Part{Key: key}, Hold: mortise.Hold{Value: value,
		Token: token}})
}

func (w *town) join(id string) { w.joinWith(id, w.count) }

func (w *town) joinWith(id string, count int) {
	w.token++
	w.plans[id], w.counts[id] = newPlan("n", count, w.r.IntN(count), id), count
	w.heard[id], w.keys[id], w.weight[id] = 0, w.token, 1+w.r.IntN(3)
	w.say(mortise.EventHeld, memberName("n")+"/"+id, memberValue(w.weight[id], w.counts[id], id), w.token)
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
		if e.Key == shardKey("n", index) && e.Kind == mortise.EventHeld {
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
	p.disagreement()
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
	p.apply(&mortise.Event{Kind: mortise.EventHeld, Part: mortise.Part{Key: memberName("n") + "/a"},
		Hold: mortise.Hold{Value: memberValue(1, 1, "a"), Token: 1}})
	p.apply(&mortise.Event{Kind: mortise.EventHeld, Part: mortise.Part{Key: shardKey("n", 0)},
		Hold: mortise.Hold{Token: 3}})
	p.apply(&mortise.Event{Kind: mortise.EventFreed, Part: mortise.Part{Key: shardKey("n", 0)},
		Hold: mortise.Hold{Token: 2}})
	if _, begin := p.next(time.Time{}); len(begin) > 0 {
		t.Errorf("the shards %v begin, although another instance owns them", begin)
	}
	p.apply(&mortise.Event{Kind: mortise.EventFreed, Part: mortise.Part{Key: shardKey("n", 0)},
		Hold: mortise.Hold{Token: 3}})
	if _, begin := p.next(time.Time{}); len(begin) != 1 {
		t.Error("the free shard does not begin")
	}
}

// TestPlansAgree lets random members join and crash. Afterwards each owns its quota, and no more
// shards have moved than the quotas demand.
func TestPlansAgree(t *testing.T) {
	slow.UnderRace(t)
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
				all = append(all, member{id: id, weight: w.weight[id], token: w.keys[id]})
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

// A rolling change of the count, forward or backward: after each step every shard of every count
// has one owner, whose count includes it, and every plan reports the others.
func TestAChangeOfTheCountLosesNoShard(t *testing.T) {
	for seed := range uint64(100) {
		w := newTown(seed)
		w.count = 1 + w.r.IntN(40)
		before, after, n := 1+w.r.IntN(w.count), w.count, 2+w.r.IntN(4)
		if w.r.IntN(2) == 0 {
			before, after = after, before
		}
		for i := range n {
			w.joinWith(fmt.Sprint("m", i), before)
		}
		w.settle(t)
		for i := range n {
			w.crash(fmt.Sprint("m", i))
			w.joinWith(fmt.Sprint("new", i), after)
			for range w.r.IntN(40) { // each member hears a part
				for _, id := range w.ids() {
					w.turn(t, id, w.r.IntN(4))
				}
			}
			w.settle(t)
			highest := after
			if i < n-1 {
				highest = max(before, after)
			}
			for index := range w.count {
				owner := w.locks[index]
				if (owner != "") != (index < highest) || owner != "" && index >= w.counts[owner] {
					t.Fatalf("seed %d, %d to %d, %d of %d changed: shard %d runs on %q", seed, before, after, i+1, n, index,
						owner)
				}
			}
			for id, p := range w.plans {
				if (p.differ != "") != (before != after && i < n-1) {
					t.Fatalf("seed %d, %d to %d, %d of %d changed: %s reports %q", seed, before, after, i+1, n, id, p.differ)
				}
			}
		}
	}
}

func TestADisagreementIsReportedOnce(t *testing.T) {
	p := newPlan("n", 4, 0, "a")
	join := func(id string, count int, token mortise.Token) {
		p.apply(&mortise.Event{Kind: mortise.EventHeld, Part: mortise.Part{Key: memberName("n") + "/" + id},
			Hold: mortise.Hold{Value: memberValue(1, count, id), Token: token, Holder: "pod-" + id}})
	}
	says := func(want string) {
		t.Helper()
		if got := p.disagreement(); got != want {
			t.Errorf("reported %q, want %q", got, want)
		}
	}
	join("a", 4, 1)
	says("")
	join("b", 8, 2)
	says(`8 on "pod-b"`)
	says("")
	join("c", 16, 3)
	says(`16 on "pod-c", 8 on "pod-b"`)
	p.apply(&mortise.Event{Kind: mortise.EventFreed, Part: mortise.Part{Key: memberName("n") + "/c"},
		Hold: mortise.Hold{Token: 3}})
	says(`8 on "pod-b"`)
	p.apply(&mortise.Event{Kind: mortise.EventFreed, Part: mortise.Part{Key: memberName("n") + "/b"},
		Hold: mortise.Hold{Token: 2}})
	says("")
	join("b", 8, 4)
	says(`8 on "pod-b"`)
	for _, wrong := range []string{"", "1 a", "0 4 a", "1 0 a", "1 4097 a", "1001 4 a", "-1 4 a", "1 -4 a"} {
		if m, ok := parseMember(wrong); ok {
			t.Errorf("%q is taken for %+v", wrong, m)
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

// TestOnlyTheEndOfAHoldFreesAShard passes each kind of event about a lock that is held, and about a
// presence. A new kind of event needs a row.
func TestOnlyTheEndOfAHoldFreesAShard(t *testing.T) {
	source, err := os.ReadFile("../watch.go")
	if err != nil {
		t.Fatal(err)
	}
	ends := map[mortise.EventKind]bool{mortise.EventFreed: true, mortise.EventLeft: true, mortise.EventReset: true}
	kept := map[mortise.EventKind]bool{mortise.EventHeld: true, mortise.EventDowngraded: true,
		mortise.EventUpgraded: true, mortise.EventData: true, mortise.EventCurrent: true, "lead": true}
	kinds := regexp.MustCompile(`EventKind = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(kinds) != len(ends)+len(kept) {
		t.Errorf("there are %d kinds of events", len(kinds))
	}
	for _, match := range kinds {
		kind := mortise.EventKind(match[1])
		if ends[kind] == kept[kind] {
			t.Errorf("%q has no row", kind)
		}
		p := newPlan("n", 4, 0, "me")
		presence := memberName("n") + "/me"
		say := func(kind mortise.EventKind, key, value string, token mortise.Token) {
			p.apply(&mortise.Event{Kind: kind, Part: mortise.Part{Key: key}, Hold: mortise.Hold{Value: value, Token: token}})
		}
		say(mortise.EventHeld, "n/shard/2", "", 7)
		say(mortise.EventHeld, presence, memberValue(1, 4, "me"), 8)
		say(kind, "n/shard/2", "", 7)
		say(kind, presence, memberValue(1, 4, "me"), 8)
		if _, owned := p.owners[2]; owned == ends[kind] || (len(p.members) == 1) == ends[kind] {
			t.Errorf("after %q the shard has an owner: %t, and there are %d members", kind, owned, len(p.members))
		}
	}
}

// TestWhatWorkMeansByDefault checks each field of Work that has a default, and that a value of the
// caller's own stays.
func TestWhatWorkMeansByDefault(t *testing.T) {
	run := func(context.Context, Shard) error { return nil }
	w, err := Work{Name: "n", Count: 4, Run: run}.checked()
	if err != nil || w.Weight != 1 || w.Backoff != time.Second || w.Report == nil {
		t.Errorf("by default Work is %+v, %v", w, err)
	}
	told := 0
	w, err = Work{Name: "n", Count: 4, Run: run, Weight: 3, Backoff: time.Minute,
		Report: func(int, error) { told++ }}.checked()
	if err != nil || w.Weight != 3 || w.Backoff != time.Minute {
		t.Errorf("Work is %+v, %v", w, err)
	}
	if w.Report(1, nil); told != 1 {
		t.Error("the caller's Report is not kept")
	}
}
