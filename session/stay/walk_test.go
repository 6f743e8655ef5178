package stay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// TestStaysKeepTheirGuarantees runs random calls and events. The rig checks the guarantees after
// each step.
func TestStaysKeepTheirGuarantees(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := &walk{rig: newRig(t, rng.IntN(4)), rng: rng, keys: 1 + rng.IntN(4), kinds: kinds}
		for range 1500 {
			w.act()
			w.sent = w.sent[max(0, len(w.sent)-30):]
		}
		w.end()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, kind := range []string{"granted at once", "waits", "held", "ordinary", "unlock", "unlock late", "cancel",
		"cancel a hold", "grant", "grant without tokens", "recall", "asked", "lose", "fail", "nested", "yield",
		"yield when free", "renewed", "late renewal", "deadline", "leave"} {
		if kinds[kind] == 0 {
			t.Errorf("it has never happened: %s", kind)
		}
	}
}

type walk struct {
	*rig
	rng   *rand.Rand
	keys  int
	kinds map[string]int
}

func (w *walk) act() {
	w.t.Helper()
	if !w.now.Before(w.deadline) && w.rng.IntN(3) > 0 { // the core may be late
		w.kinds["deadline"]++
		w.loseAll()
		w.renewed()
	}
	w.now = w.now.Add(time.Duration(w.rng.IntN(3)) * time.Millisecond)
	key := w.key(w.rng.IntN(w.keys))
	switch n := w.rng.IntN(100); {
	case n < 30:
		w.call(key)
	case n < 55:
		w.letGo()
	case n < 73:
		w.group(key)
	case n < 83:
		w.recalls(key)
	case n < 90:
		w.time()
	default:
		w.rare(key, n)
	}
}

// key returns the name of a key. Every second one is shared.
func (w *walk) key(i int) string { return fmt.Sprint([]string{"k", "r"}[i%2], i) }

func (w *walk) call(key string) {
	w.t.Helper()
	_, answer := w.lock(key, w.rng.IntN(5) == 0)
	w.kinds[map[Answer]string{Passed: "granted at once", Waits: "waits", Held: "held",
		Ordinary: "ordinary"}[answer]]++
}

// some returns a random caller that holds a lock, or one that waits.
func (w *walk) some(holds bool) *Caller {
	var all []*Caller
	for l, c := range w.callers {
		if c.holds == holds {
			all = append(all, l)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *Caller) int { return w.callers[a].begun - w.callers[b].begun })
	return all[w.rng.IntN(len(all))]
}

func (w *walk) letGo() {
	w.t.Helper()
	kind := w.rng.IntN(5)
	l := w.some(kind > 0)
	switch {
	case l == nil:
	case kind == 0:
		w.kinds["cancel"]++
		w.cancel(l)
	case kind == 1:
		w.kinds["cancel a hold"]++
		w.cancel(l)
		w.cancel(l)
	default:
		w.kinds["unlock"]++
		if !w.now.Before(w.deadline) {
			w.kinds["unlock late"]++
		}
		w.unlock(l)
		w.unlock(l)
	}
}

func (w *walk) group(key string) {
	w.t.Helper()
	if q := w.request(key); q != nil && !w.asked[q].granted {
		w.reserves = lockfsm.Token([]int{0, 1, 4, 50}[w.rng.IntN(4)])
		if w.reserves == 0 {
			w.kinds["grant without tokens"]++
		}
		w.kinds["grant"]++
		w.grant(key)
		if w.rng.IntN(4) == 0 && w.request(key) != nil {
			w.recalls(key)
		}
	}
}

func (w *walk) recalls(key string) {
	w.t.Helper()
	if q := w.request(key); q == nil || !w.asked[q].granted {
		return
	}
	switch w.rng.IntN(5) {
	case 0, 1:
		w.kinds["recall"]++
		w.recall(key, 0)
	case 2, 3:
		w.kinds["asked"]++
		w.recall(key, 77)
	default:
		w.kinds["yield when free"]++
		w.yieldWhenFree(key)
	}
}

func (w *walk) time() {
	w.t.Helper()
	switch w.rng.IntN(6) {
	case 0:
		w.tick(time.Duration(w.rng.Int64N(int64(2 * rigIdle))))
	case 5:
		w.tick(time.Duration(w.rng.Int64N(int64(rigTTL))))
	case 1:
		w.kinds["late renewal"]++
		w.s.Renewed(w.window())
		w.step()
	case 2:
		if w.now.Before(w.deadline) {
			w.kinds["renewed"]++
			w.renewed()
		}
	default:
		w.tick(time.Duration(w.rng.IntN(int(recallTime))))
	}
}

func (w *walk) rare(key string, n int) {
	w.t.Helper()
	q := w.request(key)
	switch {
	case n < 92 && q != nil && w.asked[q].granted:
		w.kinds["lose"]++
		w.lose(key)
	case n < 92 && q != nil:
		w.kinds["fail"]++
		w.fail(key)
	case n < 94:
		if l := w.some(true); l != nil {
			w.kinds["nested"]++
			w.nested(l)
		}
	case n < 96:
		w.kinds["yield"]++
		w.yield(key)
	case n == 99 && w.rng.IntN(40) == 0 && !w.leaving:
		w.kinds["leave"]++
		w.leave()
	}
}

func (w *walk) loseAll() {
	w.t.Helper()
	for i := range w.keys {
		if q := w.request(w.key(i)); q != nil && w.asked[q].granted {
			w.lose(q.Key)
		}
	}
}

// end ends all calls. Each of them must have got one final answer.
func (w *walk) end() {
	w.t.Helper()
	if !w.now.Before(w.deadline) {
		w.loseAll()
	}
	for _, holds := range []bool{false, true} {
		for l := w.some(holds); l != nil; l = w.some(holds) {
			w.cancel(l)
		}
	}
	w.empty()
}
