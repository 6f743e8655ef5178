package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// TestIDsAreUnique checks IDs that three instances get at the same time, across a change of the
// leader and in a group that is founded after all instances have crashed.
func TestIDsAreUnique(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		type block struct{ first, last uint64 }
		var mu sync.Mutex
		var all []block
		give := func(count, times int) {
			var callers sync.WaitGroup
			for _, node := range f.nodes {
				if node == nil {
					continue
				}
				callers.Go(func() {
					last := uint64(0)
					for range times {
						first, err := node.IDs(t.Context(), count)
						if err != nil || first <= last {
							t.Errorf("IDs: %d after %d, %v", first, last, err)
							return
						}
						last = first + uint64(count) - 1
						mu.Lock()
						all = append(all, block{first, last})
						mu.Unlock()
					}
				})
			}
			callers.Wait()
		}
		give(65_536, 10)
		before := f.lock(0, "k")
		unlock(t, before)
		give(3, 10)
		f.crash(f.leader())
		give(1, 10)
		for i, node := range f.nodes {
			if node != nil {
				f.crash(i)
			}
		}
		time.Sleep(time.Second)
		most := slices.MaxFunc(all, func(a, b block) int { return int(a.last) - int(b.last) }).last
		for i := range 3 {
			f.start(i, f.config(i, 3))
		}
		after := f.lock(1, "k")
		if uint64(after.Token()) <= most {
			t.Errorf("the token %d is below the ID %d", after.Token(), most)
		}
		unlock(t, after)
		give(1000, 1)
		slices.SortFunc(all, func(a, b block) int { return int(a.first) - int(b.first) })
		for i, b := range all {
			if i > 0 && b.first <= all[i-1].last {
				t.Errorf("the IDs %v and %v overlap", all[i-1], b)
			}
			if token := uint64(before.Token()); b.first <= token && token <= b.last {
				t.Errorf("the IDs %v contain the token %d", b, token)
			}
		}
		if len(all) != 83 {
			t.Errorf("only %d blocks", len(all))
		}
		for _, count := range []int{-1, 0, 65_537} {
			_, err := f.nodes[0].IDs(t.Context(), count)
			wantIs(t, err, mortise.ErrBadRequest)
		}
	})
}
