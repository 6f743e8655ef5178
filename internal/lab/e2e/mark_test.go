package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/lockfsm"
)

// TestAMarkTravelsWithTheLock checks that hooks on another instance get the holder's mark, and
// that errors and Peek show the value of the lock without the mark.
func TestAMarkTravelsWithTheLock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ears []*heard
		f := startFleet(t, 3, func(c *mortise.Config) {
			ear, name := new(heard), c.Name
			ears = append(ears, ear)
			c.Hooks = ear.hooks()
			c.Hooks.Mark = func(ctx context.Context) []byte { return []byte("mark of " + name) }
		})
		for i, value := range []string{"", "busy", strings.Repeat("x", lockfsm.MaxValueBytes)} {
			want := "mark of node-0"
			if i == 2 {
				want = "" // the value leaves no room for the mark
			}
			l := f.acquire(0, mortise.Request{Key: "k", Value: value})
			_, err := f.nodes[1].TryLock(t.Context(), "k")
			if e := ears[1].last(t); e.Outcome != mortise.OutcomeHeld || string(e.BehindMark) != want ||
				e.Behind.Value != value {
				t.Errorf("refused: %+v", e)
			}
			if text := fmt.Sprint(err); strings.Contains(text, "mark") || strings.Contains(text, `\xff`) ||
				value != "" && !strings.Contains(text, value) {
				t.Errorf("%q", text)
			}
			if info := f.peek(2, "k"); info.Queue[0].Value != value {
				t.Errorf("Peek shows %q", info.Queue[0].Value)
			}
			next := f.later(2, mortise.Request{Key: "k"})
			time.Sleep(time.Second)
			unlock(t, l)
			unlock(t, comes(t, "the next", next))
			synctest.Wait()
			ears[2].mu.Lock()
			granted := false
			for _, e := range ears[2].locks {
				granted = granted || e.Outcome == mortise.OutcomeGranted && string(e.BehindMark) == want &&
					e.Behind != nil && e.Behind.Value == value
			}
			ears[2].mu.Unlock()
			if !granted {
				t.Errorf("who waited was not told the mark %q: %+v", want, ears[2].locks)
			}
			ears[2].of()
		}
		f.nothingLeft()
	})
}
