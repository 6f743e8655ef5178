package e2e

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
)

// TestCertificatesAreRenewedUnderALock runs for nine days of fake time, in which all first
// certificates expire. One lock must remain held all the time.
func TestCertificatesAreRenewedUnderALock(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f, machines := startMachines(t, withSecret(secretA))
		holder := f.follower()
		mine := f.lock(holder, "mine")
		for hours := 20; hours <= 9*24; hours += 20 {
			for i, m := range machines {
				m.setWall(time.Duration(hours) * time.Hour)
				f.net.Reset(host(i))
			}
			time.Sleep(time.Second)
			if err := mine.Err(); err != nil {
				t.Fatalf("after %d hours: %v", hours, err)
			}
			unlock(t, f.lock(hours%3, "k"))
		}
		f.alter = func(e *outside.World) { e.Wall = machines[0].wall }
		f.unjudged = true // the clock of its history is days ahead of the other clocks
		late := f.config(3, 3)
		withSecret(secretA)(&late)
		f.start(3, late)
		f.ready()
		unlock(t, f.lock(3, "k"))
		unlock(t, mine)
		f.nothingLeft()
	})
}
