package hold_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/hold"
	"github.com/mortise-lock/mortise/session/client"
)

// endless is a hold that ends when its channel is closed, for a reason.
type endless struct {
	done chan struct{}
	why  error
}

func (e *endless) Done() <-chan struct{} { return e.done }
func (e *endless) Err() error            { return e.why }

// TestAFunctionThatHangsIsNoticed ends a hold before, in and after a function, for each reason.
// Only the end by MaxIdle in the function counts. It is told while the function hangs.
func TestAFunctionThatHangsIsNoticed(t *testing.T) {
	idle := fmt.Errorf("wrapped: %w", client.IdleError{})
	for name, c := range map[string]struct {
		why  error
		ends time.Duration // the function takes two seconds
		want []string
	}{
		"idle":     {idle, time.Second, []string{"1s " + idle.Error(), "2s returned"}},
		"overdue":  {client.OverdueError{}, time.Second, []string{"2s returned"}},
		"lost":     {mortise.ErrLost, time.Second, []string{"2s returned"}},
		"unlocked": {mortise.ErrUnlocked, time.Second, []string{"2s returned"}},
		"later":    {idle, 3 * time.Second, []string{"2s returned"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var said []string
				began := time.Now()
				say := func(text string) {
					mu.Lock()
					defer mu.Unlock()
					said = append(said, time.Since(began).String()+" "+text)
				}
				h := &endless{make(chan struct{}), c.why}
				time.AfterFunc(c.ends, func() { close(h.done) })
				hold.Watch(h, func(why error) { say(why.Error()) }, func() { time.Sleep(2 * time.Second); say("returned") })
				if !slices.Equal(said, c.want) {
					t.Errorf("%q, want %q", said, c.want)
				}
				time.Sleep(2 * time.Second)
			})
		})
	}
}

// TestAPanicPassesTheWatch lets a function panic. The panic reaches the caller, and nothing is left
// that watches.
func TestAPanicPassesTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if why := recover(); why != "so" {
				t.Errorf("recovered %v", why)
			}
		}()
		hold.Watch(&endless{done: make(chan struct{})}, func(error) { t.Error("it hangs") }, func() { panic("so") })
	})
}

func TestOnlyAnEndByMaxIdleIsIdle(t *testing.T) {
	for _, err := range []error{nil, mortise.ErrLost, client.OverdueError{}, errors.New("other")} {
		if hold.IsIdle(err) {
			t.Errorf("%v is idle", err)
		}
	}
}
