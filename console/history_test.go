package console

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// recorded starts a node with the hooks of a new History and those of other.
func recorded(t testing.TB, other *mortise.Hooks) (*mortise.Node, *History) {
	t.Helper()
	history := NewHistory()
	node, err := mortise.Start(t.Context(), mortise.Config{Name: "solo", Logger: slog.New(slog.DiscardHandler),
		Hooks: history.HooksWith(other)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := node.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return node, history
}

// counts returns the figures of a history as they are now.
func (h *History) counts() *past {
	h.mu.Lock()
	defer h.mu.Unlock()
	return pastOf(&h.hour, time.Now())
}

// A real node must have its grants, waits and losses counted once each, and its lease known.
func TestANodeIsRecorded(t *testing.T) {
	t.Parallel()
	node, history := recorded(t, &mortise.Hooks{})
	_ = New(node, Options{History: history})
	for range 3 {
		if err := lock(t, node, mortise.Request{Key: "a"}).Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	held := lock(t, node, mortise.Request{Key: "a"})
	if _, err := node.TryLock(t.Context(), "a"); err == nil {
		t.Fatal("a held lock was granted")
	}
	wait(t, node, "a", 1)
	if err := held.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call that waited is counted, with its hold",
		func() bool { return history.counts().Hold.Count == 5 })
	if p := history.counts(); p.Grants.Total != 5 || p.Waits.Total != 1 || p.Wait.Count != 5 || p.Losses.Total != 0 {
		t.Errorf("grants %d, waits %d, wait times %d, losses %d; want 5, 1, 5, 0",
			p.Grants.Total, p.Waits.Total, p.Wait.Count, p.Losses.Total)
	}
	forced := lock(t, node, mortise.Request{Key: "b"})
	if _, err := node.ForceUnlock(t.Context(), "b", forced.Token(), "a test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is counted", func() bool { return history.counts().Losses.Total == 1 })
	_ = forced.Unlock(t.Context())
	if p := history.counts(); p.Losses.Total != 1 || p.Hold.Count != 6 {
		t.Errorf("%d losses and %d holds, want 1 and 6", p.Losses.Total, p.Hold.Count)
	}
	eventually(t, "the lease is known after a renewal", func() bool {
		left := history.counts().Lease
		return left.Known && left.Now > 0 && left.Lowest > 0
	})
}

// Which events count, and as what.
func TestWhatIsCounted(t *testing.T) {
	behind := &mortise.HeldError{}
	for name, c := range map[string]struct {
		e                    mortise.LockEvent
		grants, waits, times uint64
	}{
		"granted at once":      {mortise.LockEvent{Outcome: mortise.OutcomeGranted}, 1, 0, 1},
		"granted after wait":   {mortise.LockEvent{Outcome: mortise.OutcomeGranted, Behind: behind}, 1, 1, 1},
		"gave up":              {mortise.LockEvent{Outcome: mortise.OutcomeTimeout, Behind: behind}, 0, 1, 1},
		"no leader":            {mortise.LockEvent{Outcome: mortise.OutcomeTimeout}, 0, 0, 0},
		"entered":              {mortise.LockEvent{Outcome: mortise.OutcomeEntered}, 0, 0, 0},
		"a try":                {mortise.LockEvent{Outcome: mortise.OutcomeHeld, Behind: behind}, 0, 0, 0},
		"a try of a kept lock": {mortise.LockEvent{Outcome: mortise.OutcomeNotReady, Behind: behind}, 0, 0, 0},
		"queue full":           {mortise.LockEvent{Outcome: mortise.OutcomeQueueFull, Behind: behind}, 0, 0, 0},
		"deadlock":             {mortise.LockEvent{Outcome: mortise.OutcomeDeadlock, Behind: behind}, 0, 0, 0},
		"an election": {mortise.LockEvent{Outcome: mortise.OutcomeGranted, Behind: behind, Purpose: "election"},
			1, 0, 0},
	} {
		h := NewHistory()
		h.acquired(time.Now(), &c.e)
		if p := h.counts(); p.Grants.Total != c.grants || p.Waits.Total != c.waits || p.Wait.Count != c.times {
			t.Errorf("%s: %d grants, %d waits, %d wait times", name, p.Grants.Total, p.Waits.Total, p.Wait.Count)
		}
	}
	for name, c := range map[string]struct {
		e     mortise.LockEvent
		holds uint64
	}{
		"unlocked":              {mortise.LockEvent{Outcome: mortise.OutcomeConfirmed}, 1},
		"other handles hold it": {mortise.LockEvent{Outcome: mortise.OutcomeLeft}, 0},
		"lost before":           {mortise.LockEvent{Outcome: mortise.OutcomeLost}, 0},
		"an election":           {mortise.LockEvent{Outcome: mortise.OutcomeConfirmed, Purpose: "election"}, 0},
	} {
		h := NewHistory()
		h.unlocked(time.Now(), &c.e)
		if p := h.counts(); p.Hold.Count != c.holds {
			t.Errorf("%s: %d holds", name, p.Hold.Count)
		}
	}
}

// The hooks of another observer must be called too, with the same events and tags.
func TestOtherHooksAreCalledToo(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	met := map[string]int{}
	note := func(what string) { mu.Lock(); defer mu.Unlock(); met[what]++ }
	next := &mortise.Hooks{
		Mark:     func(context.Context) []byte { note("mark"); return nil },
		Acquired: func(context.Context, mortise.LockEvent) any { note("acquired"); return "tag" },
		Unlocked: func(_ context.Context, e mortise.LockEvent) {
			if e.Tag == "tag" {
				note("unlocked")
			}
		},
		Lost: func(mortise.LockEvent) { note("lost") },
		Node: func(e mortise.NodeEvent) { note(string(e.State)) },
	}
	node, _ := recorded(t, next)
	if err := lock(t, node, mortise.Request{Key: "a"}).Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	forced := lock(t, node, mortise.Request{Key: "b"})
	if _, err := node.ForceUnlock(t.Context(), "b", forced.Token(), "a test"); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"mark", "acquired", "unlocked", "lost", string(mortise.RenewalAcknowledged),
		string(mortise.SessionOpened),
		string(mortise.LeaseSafe), string(mortise.NodeAvailable)} {
		eventually(t, "the hook is called: "+what, func() bool { mu.Lock(); defer mu.Unlock(); return met[what] > 0 })
	}
	if next.Leaked != nil || (&History{}).Hooks().Leaked != nil || (&History{}).Hooks().Mark != nil {
		t.Error("a hook that costs time is set")
	}
}

// Counting must not allocate, and a mounted page must not change what a lock allocates.
func TestCountingDoesNotAllocate(t *testing.T) {
	h := NewHistory()
	hooks := h.Hooks()
	ctx := t.Context()
	e := mortise.LockEvent{Outcome: mortise.OutcomeGranted, Took: time.Millisecond}
	if n := testing.AllocsPerRun(1000, func() {
		hooks.Acquired(ctx, e)
		hooks.Unlocked(ctx, e)
		hooks.Lost(e)
		h.leased(time.Now(), time.Second)
	}); n != 0 {
		t.Errorf("the hooks allocate %v times", n)
	}
	allocs := func(hooks *mortise.Hooks, options Options) float64 {
		node, err := mortise.Start(ctx, mortise.Config{Name: "solo", Logger: slog.New(slog.DiscardHandler), Hooks: hooks})
		if err != nil {
			t.Fatal(err)
		}
		defer node.Close()
		ready(t, node)
		handler := New(node, options)
		mustPage(t, handler, "/")
		return testing.AllocsPerRun(2000, func() {
			if err := must(node.Lock(ctx, "a")).Unlock(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
	none := allocs(nil, Options{})
	empty := allocs(&mortise.Hooks{Acquired: func(context.Context, mortise.LockEvent) any { return nil },
		Unlocked: func(context.Context, mortise.LockEvent) {}, Lost: func(mortise.LockEvent) {}}, Options{})
	counted := allocs(h.Hooks(), Options{History: h})
	for range 4 { // other goroutines of a node allocate too, and more of them run on a busy machine
		counted = min(counted, allocs(h.Hooks(), Options{History: h}))
	}
	t.Logf("allocations of a lock and its unlock: %v; with hooks that do nothing %v; with a History %v",
		none, empty, counted)
	if counted > empty+1 {
		t.Errorf("with a History %v allocations, with hooks that do nothing %v", counted, empty)
	}
}

func must(l *mortise.Lock, err error) *mortise.Lock {
	if err != nil {
		panic(err)
	}
	return l
}

func BenchmarkHistory(b *testing.B) {
	h := NewHistory()
	e := mortise.LockEvent{Outcome: mortise.OutcomeGranted, Took: time.Millisecond}
	hooks := h.Hooks()
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			hooks.Acquired(context.Background(), e)
		}
	})
}

func BenchmarkPast(b *testing.B) {
	h := anHour()
	for b.Loop() {
		h.counts()
	}
}
