package transport

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// testDials returns dials whose pauses are as long as their limit allows.
func testDials() *dials {
	last := func(b []byte) {
		for i := range b {
			b[i] = 0xff
		}
	}
	return newDials(last, func() bool { return false })
}

// endings are the ways in which a dial ends, as the arguments of leave.
var endings = map[string]struct {
	err   error
	known bool
}{
	"reached": {nil, true}, "refused": {syscall.ECONNREFUSED, true}, "answered": {ErrForeign, true},
	"answered by another instance": {&OtherError{}, true}, "abandoned": {errAbandoned, false},
	"canceled": {context.Canceled, false},
}

// try returns the ticket of a dial that begins at once, or an error.
func (d *dials) try(addr string) (*ticket, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	return d.enter(ctx, addr, nodeid.ID{})
}

// The place of a dial is given back, however the dial ends.
func TestDialPlacesAreGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		prefers bool
		limit   int
	}{"ordinary": {false, dialsOrdinary}, "preferred": {true, maxDials}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, last := testDials(), 0
				ways := map[string]func() (func(), error){}
				take := func() (*ticket, error) {
					last++
					addr := fmt.Sprint("host", last)
					if c.prefers {
						d.prefer([]string{addr})
					}
					time.Sleep(time.Second) // so that the rates allow a burst
					return d.try(addr)
				}
				for way, how := range endings {
					ways[way] = func() (func(), error) {
						one, err := take()
						return func() { d.leave(one, nodeidtest.ID(1), how.err, how.known) }, err
					}
				}
				ways["no longer preferred"] = func() (func(), error) {
					one, err := take()
					return func() {
						d.prefer(nil)
						d.leave(one, nodeid.ID{}, nil, true)
					}, err
				}
				limits.GivenBack(t, limits.Places{Limit: c.limit, Endings: ways,
					Used: func() int { return d.places.busy[ordinary] + d.places.busy[preferred] }})
			})
		})
	}
}

// The end of a dial begins the next one in the queue at once, however it ends.
func TestTheEndOfADialBeginsTheNext(t *testing.T) {
	for way, how := range endings {
		synctest.Test(t, func(t *testing.T) {
			d := testDials()
			var taken []*ticket
			for i := range dialsOrdinary {
				one, err := d.try(fmt.Sprint("host", i))
				if err != nil {
					t.Fatal(err)
				}
				taken = append(taken, one)
			}
			began := make(chan error, 1)
			go func() {
				_, err := d.enter(t.Context(), "next", nodeid.ID{})
				began <- err
			}()
			time.Sleep(time.Second)
			select {
			case <-began:
				t.Fatalf("%d dials are in flight", dialsOrdinary+1)
			default:
			}
			at := time.Now()
			d.leave(taken[0], nodeidtest.ID(1), how.err, how.known)
			select {
			case err := <-began:
				if took := time.Since(at); err != nil || took > 0 {
					t.Errorf("after a dial that was %s, the next one began after %v: %v", way, took, err)
				}
			case <-time.After(time.Minute):
				t.Errorf("after a dial that was %s, the next one does not begin", way)
				d.places = newPlaces()
			}
			d.forget(true)
		})
	}
}

// A call that waits for the pause of an address learns each change of the pause.
func TestWaitsForAPauseLearnEachChange(t *testing.T) {
	const addr = "host"
	for change, c := range map[string]struct {
		do     func(d *dials)
		within time.Duration
	}{
		"none":        {func(*dials) {}, maxPause},
		"reached":     {func(d *dials) { d.reached(addr) }, 0},
		"preferred":   {func(d *dials) { d.prefer([]string{addr}) }, preferredLast},
		"forgotten":   {func(d *dials) { d.forget(false) }, 0},
		"failed anew": {func(d *dials) { d.failed(pauseKey{addr: addr}, syscall.ECONNREFUSED, 0) }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := testDials()
			for range 10 { // so that the pause is as long as it can be
				d.failed(pauseKey{addr: addr}, syscall.ETIMEDOUT, 1<<62)
			}
			done := make(chan error, 1)
			go func() { done <- d.await(t.Context(), addr) }()
			synctest.Wait()
			at := time.Now()
			c.do(d)
			if err := <-done; err != nil {
				t.Errorf("%s: %v", change, err)
			}
			if took := time.Since(at); took > c.within || change == "none" && took < time.Second {
				t.Errorf("%s: the wait ended after %v, want at most %v", change, took, c.within)
			}
		})
	}
}
