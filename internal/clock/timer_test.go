package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// jumpClock is the clock of the bubble plus a jump that the test controls.
type jumpClock struct {
	Clock
	leap Manual
}

func (j *jumpClock) Now() Time { return j.Clock.Now().Add(j.leap.Now().Sub(0)) }

// TestAlarm checks that a timer fires no later than the last call of Set requires, even after a
// suspension in which the clock advances and the timer does not.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &jumpClock{Clock: Monotonic()}
		a := NewTimer(c)
		defer a.Stop()
		after := func(d, want time.Duration) {
			t.Helper()
			now := c.Now()
			began := time.Now()
			a.Set(now, now.Add(d))
			<-a.C
			a.Fired()
			if took := time.Since(began); took != want {
				t.Errorf("an alarm set to %v fired after %v, want %v", d, took, want)
			}
		}
		after(time.Second, time.Second)
		after(-time.Second, time.Millisecond) // no busy loop
		a.Set(c.Now(), c.Now().Add(time.Second))
		after(time.Second+muchEarlier-1, time.Second) // the earlier call of Set applies
		a.Set(c.Now(), c.Now().Add(time.Second))
		after(time.Minute, time.Minute) // a wake-up so early would be for nothing
		a.Set(c.Now(), c.Now().Add(time.Minute))
		after(time.Second, time.Second)
		a.Set(c.Now(), c.Now().Add(time.Minute))
		c.leap.Advance(time.Hour)
		after(2*time.Second, 2*time.Second)
		a.Set(c.Now(), 0)
		time.Sleep(time.Hour)
		select {
		case <-a.C:
			t.Error("an alarm that was not set fired")
		default:
		}
	})
}
