package mortisetest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/mortisetest"
)

func TestStartsInRealTime(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			began := time.Now()
			mortisetest.New(t, n)
			t.Logf("%d nodes are ready after %v", n, time.Since(began))
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
				t.Logf("%d nodes are ready after %v of the bubble's time", n, time.Since(began))
			})
			t.Logf("%d nodes were started and closed in %v", n, time.Since(began))
		})
	}
}
