package hold

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/mortisetest"
)

// A timer can fire just before Extend, or be late. The clock decides.
func TestTheClockDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := mortisetest.New(t, 1).Node(0)
		lock, err := node.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		h := New(lock, time.Hour)
		h.fire() // before its time
		if err := h.Err(); err != nil {
			t.Errorf("held: %v", err)
		}
		h.timer.Stop() // it will be late
		time.Sleep(2 * time.Hour)
		if err := h.Extend(time.Hour); !errors.Is(err, ErrExpired) {
			t.Errorf("extended after its end: %v", err)
		}
		if err := h.Release(t.Context()); !errors.Is(err, ErrExpired) {
			t.Errorf("released after its end: %v", err)
		}
		h.fire()
		next, err := node.TryLock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
