package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// An alarm rings at the latest when it was last told to, and after a machine was suspended as soon as its clock says, though its timer stood
// still meanwhile.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &jumpClock{Clock: clock.Monotonic()}
		a := newAlarm(c)
		defer a.Stop()
		after := func(d, want time.Duration) {
			t.Helper()
			now := c.Now()
			began := time.Now()
			a.set(now, now.Add(d))
			<-a.C
			a.rung()
			if took := time.Since(began); took != want {
				t.Errorf("asked to ring after %v it rang after %v, want %v", d, took, want)
			}
		}
		after(time.Second, time.Second)
		after(-time.Second, time.Millisecond) // never a loop
		a.set(c.Now(), c.Now().Add(time.Second))
		after(time.Minute, time.Second) // it is set early enough
		a.set(c.Now(), c.Now().Add(time.Minute))
		after(time.Second, time.Second)
		a.set(c.Now(), c.Now().Add(time.Minute))
		c.leap.Advance(time.Hour)
		after(2*time.Second, 2*time.Second)
		a.set(c.Now(), 0)
		time.Sleep(time.Hour)
		select {
		case <-a.C:
			t.Error("told nothing it rang")
		default:
		}
	})
}
