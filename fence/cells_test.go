package fence

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

// TestAMarkKeepsNoCellInVain lets runs begin, wait, give up, end and be forgotten at random. When
// all have ended and each resource was dropped, the Mark has no cell.
func TestAMarkKeepsNoCellInVain(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			r, m := rand.New(rand.NewPCG(seed, 5)), &Mark{}
			var all sync.WaitGroup
			for range 30 {
				name, token := fmt.Sprint(r.IntN(3)), mortise.Token(1+r.IntN(9))
				begins, lasts := time.Duration(r.IntN(8)), time.Duration(1+r.IntN(4))
				patience, forgets := time.Duration(1+r.IntN(4)), time.Duration(r.IntN(8))
				all.Go(func() {
					time.Sleep(begins)
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					_ = m.Do(ctx, name, token, func(context.Context) error { time.Sleep(lasts); return nil })
				})
				all.Go(func() {
					time.Sleep(forgets)
					m.Forget(name)
				})
			}
			all.Wait()
			for name, c := range m.cells {
				if len(c.runs) != 0 || c.waiting != 0 || c.over != nil || c.highest == 0 {
					t.Errorf("seed %d: nothing runs, and cell %s is %+v", seed, name, c)
				}
			}
			for i := range 3 {
				m.Forget(fmt.Sprint(i))
			}
			if len(m.cells) != 0 {
				t.Errorf("seed %d: %d cells are left", seed, len(m.cells))
			}
		})
	}
}
