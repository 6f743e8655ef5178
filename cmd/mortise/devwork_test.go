package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// kinds keeps the kind of the last report that is written to it.
type kinds struct{ last devKind }

func (k *kinds) Write(line []byte) (int, error) {
	var r devReport
	err := json.Unmarshal(line, &r)
	k.last = r.Kind
	return len(line), err
}

// TestATurnEndsAfterItsWrite checks that no other instance is granted the lock before the parent
// has done the write. Otherwise the parent may refuse a write without any fault.
func TestATurnEndsAfterItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 1, mortisetest.Options{})
		c.Ready()
		ctx, cancel := context.WithCancel(t.Context())
		said, wrote, ended := &kinds{}, make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			devWork(ctx, c.Node(0), &reporter{out: json.NewEncoder(said)}, wrote)
		}()
		time.Sleep(2 * devTurn) // fake time
		synctest.Wait()
		if said.last != devWrites {
			t.Fatalf("the last report is %q, want %q", said.last, devWrites)
		}
		if _, err := c.Node(0).TryLock(ctx, devKey); !errors.Is(err, mortise.ErrHeld) {
			t.Errorf("the write was not answered, and the lock of the turn is %v, want held", err)
		}
		wrote <- struct{}{}
		synctest.Wait()
		if said.last != devGranted {
			t.Errorf("the last report is %q, want that of the next turn", said.last)
		}
		cancel()
		<-ended
	})
}
