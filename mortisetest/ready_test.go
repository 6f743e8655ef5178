package mortisetest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/mortisetest"
)

// startLimit is what the start of a cluster may take until all are ready.
const startLimit = 2 * time.Second

func TestStartsInRealTime(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			began := time.Now()
			mortisetest.New(t, n)
			took := time.Since(began)
			t.Logf("%d nodes are ready after %v", n, took)
			if n <= 3 && took > 5*startLimit { // real time: five times the limit; more nodes than cores are for bubbles
				t.Errorf("%d nodes were ready only after %v", n, took)
			}
		})
	}
}

func TestStartsInABubble(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			began := time.Now()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				mortisetest.New(t, n)
				took := time.Since(began)
				t.Logf("%d nodes are ready after %v of fake time", n, took)
				if took > 2*startLimit { // what is random in it has no hard limit
					t.Errorf("%d nodes were ready only after %v", n, took)
				}
			})
			t.Logf("%d nodes were started and closed in %v", n, time.Since(began))
		})
	}
}
