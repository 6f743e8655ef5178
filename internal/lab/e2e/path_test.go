package e2e

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func TestPaths(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		one := f.acquire(0, mortise.Request{Key: "a/b/c", Tree: true})
		two := f.acquire(1, mortise.Request{Key: "a/b/d", Tree: true})
		reader := f.acquire(2, mortise.Request{Key: "a/x", Tree: true, Mode: mortise.Shared})
		unlock(t, f.acquire(2, mortise.Request{Key: "a", Mode: mortise.Shared})) // a reader of the node only
		more := f.acquire(2, mortise.Request{Key: "a/b/f", Tree: true, Mode: mortise.Shared})
		all := f.later(0, mortise.Request{Key: "a/b", Tree: true, Mode: mortise.Shared})
		below := f.later(1, mortise.Request{Key: "a/b/e", Tree: true})
		waits(t, "a reader of all below two writers", all)
		waits(t, "a writer behind it", below)
		unlock(t, one)
		waits(t, "a reader of all below one writer", all)
		unlock(t, two)
		read := comes(t, "the reader of all", all)
		waits(t, "a writer below a reader", below)
		if _, err := f.nodes[1].Acquire(t.Context(), mortise.Request{Key: "a/b/f", Tree: true, Try: true}); !errors.Is(err,
			mortise.ErrHeld) || !strings.Contains(err.Error(), `"a/b"`) {
			t.Errorf("a try below a reader: %v", err)
		}
		info, err := f.nodes[2].Peek(t.Context(), "a/b")
		if err != nil || len(info.Queue) != 3 ||
			info.Queue[0].Part != (mortise.Part{Key: "a/b/f", Mode: mortise.Shared, Tree: true}) ||
			info.Queue[1].Part != (mortise.Part{Key: "a/b", Mode: mortise.Shared, Tree: true}) ||
			info.Queue[2].Part != (mortise.Part{Key: "a/b/e", Tree: true}) {
			t.Errorf("Peek: %+v, %v", info, err)
		}
		unlock(t, read)
		unlock(t, comes(t, "the writer below", below)) // beside the reader of its sibling
		alone := f.later(0, mortise.Request{Key: "a"})
		waits(t, "a lock of the root", alone)
		unlock(t, more)
		unlock(t, reader)
		unlock(t, comes(t, "the lock of the root", alone))
		if read.Key() != "a/b" || more.Key() != "a/b/f" {
			t.Errorf("the keys are %q and %q", read.Key(), more.Key())
		}
	})
}

// TestPathsUnderPaths enters locks again under a lock of a node above.
func TestPathsUnderPaths(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		n := f.nodes[f.follower()]
		l := f.acquire(f.follower(), mortise.Request{Key: "a/b", Tree: true})
		ctx := l.Context(t.Context())
		for _, r := range []mortise.Request{
			{Key: "a/b", Tree: true}, {Key: "a/b/c", Tree: true}, {Key: "a/b/c", Tree: true, Mode: mortise.Shared},
			{Key: "a/b"}, {Key: "a", Mode: mortise.Shared},
			{Key: "a/b", Also: []mortise.Part{{Key: "a/b/c", Tree: true}, {Key: "a/b/d", Tree: true, Mode: mortise.Shared}}},
		} {
			again, err := n.Acquire(ctx, r)
			if err != nil || again.Token() != l.Token() {
				t.Fatalf("%+v: %v, %v", r, again, err)
			}
			unlock(t, again)
		}
		other, err := n.Acquire(ctx, mortise.Request{Key: "a/c", Tree: true})
		if err != nil || other.Token() == l.Token() {
			t.Fatalf("a sibling: %v, %v", other, err)
		}
		unlock(t, other)
		// A plain key below a node is no node: its lock would exclude others that the hold lets in.
		for _, r := range []mortise.Request{{Key: "a/b/c"}, {Key: "a/b", Also: []mortise.Part{{Key: "a/b/c"}}, Tree: true},
			{Key: "a/b", Tree: true, Also: []mortise.Part{{Key: "x"}}}} {
			r.Try = true
			again, err := n.Acquire(ctx, r)
			if err == nil && again.Token() == l.Token() {
				t.Errorf("%+v is entered, and the hold does not cover it", r)
			}
			if err == nil {
				unlock(t, again)
			}
		}
		unlock(t, l)

		l = f.acquire(f.follower(), mortise.Request{Key: "a", Tree: true, Mode: mortise.Shared})
		ctx = l.Context(t.Context())
		again, err := n.Acquire(ctx, mortise.Request{Key: "a/b/c", Tree: true, Mode: mortise.Shared})
		if err != nil || again.Token() != l.Token() {
			t.Fatalf("a reader under a reader: %v, %v", again, err)
		}
		unlock(t, again)
		var deadlock *mortise.DeadlockError
		if _, err := n.Acquire(ctx, mortise.Request{Key: "a/b", Tree: true}); !errors.As(err, &deadlock) {
			t.Errorf("a writer under a reader: %v", err)
		}
		unlock(t, l)
		f.nothingLeft()
	})
}

func TestMistakesInPaths(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := startFleet(t, 1).nodes[0]
		for _, r := range []mortise.Request{
			{Key: "a/", Tree: true}, {Key: "/a", Tree: true}, {Key: "a//b", Tree: true}, {Key: "/", Tree: true},
			{Key: "a", Tree: true, Mode: mortise.Permits(1, 2)}, {Key: "a", Tree: true, Mode: mortise.Upgradable},
			{Key: strings.Repeat("a/", 255) + "a", Tree: true, Also: []mortise.Part{{Key: "b"}}},
		} {
			if _, err := n.Acquire(t.Context(), r); !errors.Is(err, mortise.ErrBadRequest) ||
				!strings.Contains(err.Error(), "Tree") {
				t.Errorf("%+v: %v", r, err)
			}
		}
		if _, err := n.Acquire(t.Context(), mortise.Request{Key: "a/b\n", Tree: true}); !errors.Is(err, mortise.ErrBadKey) {
			t.Errorf("a control character: %v", err)
		}
		l, err := n.Acquire(t.Context(), mortise.Request{Key: strings.Repeat("a/", 255) + "a", Tree: true})
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, l)
	})
}

// tree records who is inside the nodes of a tree, by the rule and not by its modes.
type tree struct {
	mu     sync.Mutex
	inside map[string][2]int // readers and writers
}

func (tr *tree) enters(t *testing.T, path string, shared bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for other, n := range tr.inside {
		related := strings.HasPrefix(other+"/", path+"/") || strings.HasPrefix(path+"/", other+"/")
		if related && (n[1] > 0 || n[0] > 0 && !shared) {
			t.Errorf("%s (shared: %v) beside %s with %d readers and %d writers", path, shared, other, n[0], n[1])
		}
	}
	tr.add(path, shared, 1)
}

func (tr *tree) add(path string, shared bool, by int) {
	n := tr.inside[path]
	if shared {
		n[0] += by
	} else {
		n[1] += by
	}
	tr.inside[path] = n
}

func (tr *tree) leaves(path string, shared bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.add(path, shared, -1)
}

// TestManyPathsExclude locks random nodes from all instances, while a leader is lost.
func TestManyPathsExclude(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 5)
		lead := f.leader()
		tr := &tree{inside: map[string][2]int{}}
		var all sync.WaitGroup
		for i := range 12 {
			n, r := f.nodes[(lead+1+i%4)%5], rand.New(rand.NewPCG(1, uint64(i)))
			all.Go(func() {
				for range 30 {
					path := string(rune('a' + r.IntN(2)))
					for range r.IntN(3) {
						path += "/" + string(rune('a'+r.IntN(2)))
					}
					shared, mode := r.IntN(2) == 0, mortise.Exclusive
					if shared {
						mode = mortise.Shared
					}
					l, err := n.Acquire(t.Context(), mortise.Request{Key: path, Mode: mode, Tree: true})
					if err != nil {
						t.Error(err)
						return
					}
					tr.enters(t, path, shared)
					if r.IntN(4) == 0 {
						_, _, _ = n.Get(t.Context(), "time passes")
					}
					tr.leaves(path, shared)
					unlock(t, l)
				}
			})
		}
		all.Go(func() { f.crash(lead) })
		all.Wait()
	})
}
