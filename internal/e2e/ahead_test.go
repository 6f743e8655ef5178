package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// Each of several requests of one node for the same key sees its own place while it waits, also
// after a change of the leader.
func TestAWaiterSeesItsPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		at := f.follower()
		held := f.acquire(at, mortise.Request{Key: "k", Value: "holder"})
		own := f.session(at, 10*time.Second)
		granted := make(chan *mortise.Lock, 4)
		for i := range 4 {
			ask := f.nodes[at].Acquire
			if i == 2 {
				ask = own.Acquire
			}
			go func() {
				l, err := ask(t.Context(), mortise.Request{Key: "k", Value: fmt.Sprint("job ", i)})
				if err != nil {
					t.Error(err)
				}
				granted <- l
			}()
			time.Sleep(time.Second)
		}
		see := func(from int, value string, want int, waits bool) {
			t.Helper()
			if got, is, err := f.nodes[from].Ahead(brief(t), "k", value); got != want || is != waits || err != nil {
				t.Errorf("%q: %d, %v, %v; want %d, %v", value, got, is, err, want, waits)
			}
		}
		for i := range 4 {
			see(at, fmt.Sprint("job ", i), 1+i, true)
		}
		see(at, "holder", 0, false)
		see(at, "job 9", 0, false)
		see(f.leader(), "job 0", 0, false) // it is not the leader's own
		unlock(t, held)
		next := <-granted
		f.crash(f.leader())
		for i := 1; i < 4; i++ {
			see(at, fmt.Sprint("job ", i), i, true)
		}
		unlock(t, next)
		for range 3 {
			unlock(t, <-granted)
		}
	})
}
