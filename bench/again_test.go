package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// keeping is a peer with one lock for all keys. A key is locked fast on the instance that has
// locked it last.
type keeping struct {
	inside sync.Mutex // the lock; guards the other fields
	last   map[string]int
	locks  map[string][membersOf]int
}

const giveBackTime = 2 * time.Millisecond

func newKeeping() *keeping {
	return &keeping{last: map[string]int{}, locks: map[string][membersOf]int{}}
}

func (*keeping) Version() string { return "0" }
func (*keeping) Close() error    { return nil }

func (k *keeping) Instances() []Instance {
	return []Instance{keepingInstance{k, 0}, keepingInstance{k, 1}, keepingInstance{k, 2}}
}

func (k *keeping) Unlock(context.Context) error {
	k.inside.Unlock()
	return nil
}

type keepingInstance struct {
	peer  *keeping
	index int
}

func (i keepingInstance) Caller(context.Context, bool) (Locker, error) { return i, nil }

func (i keepingInstance) Lock(_ context.Context, key string) (Hold, error) {
	k := i.peer
	k.inside.Lock()
	if last, known := k.last[key]; known && last != i.index {
		time.Sleep(giveBackTime)
	}
	count := k.locks[key]
	count[i.index]++
	k.last[key], k.locks[key] = i.index, count
	return k, nil
}

func TestOnlyLocksAfterAnotherInstanceAreSlow(t *testing.T) {
	for name, slow := range map[string]bool{"own64": false, "turns3": true, "recall": true} {
		w, _ := workloadNamed(name)
		result, err := w.Run(t.Context(), &Run{Cluster: newKeeping(), Duration: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if got := result.P50 > giveBackTime/2; got != slow {
			t.Errorf("%s: the median of Lock is %v", name, result.P50)
		}
	}
}

func TestMostlyIsOnOneInstance(t *testing.T) {
	k := newKeeping()
	if _, err := mostly(t.Context(), &Run{Cluster: k, Duration: time.Second}); err != nil {
		t.Fatal(err)
	}
	all, expected := 0, 0
	for key, counts := range k.locks {
		number, err := strconv.Atoi(strings.TrimPrefix(key, "mostly-"))
		if err != nil {
			t.Fatal(err)
		}
		expected += counts[number%membersOf]
		all += counts[0] + counts[1] + counts[2]
	}
	if share := float64(expected) / float64(all); share < 0.92 || share > 0.98 {
		t.Errorf("%.3f of %d locks are on the instance of the key, want 0.95", share, all)
	}
}

func TestLocal64IsOnOneInstance(t *testing.T) {
	k := newKeeping()
	if _, err := handoverOn(1, 64)(t.Context(), &Run{Cluster: k, Duration: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if n := k.locks["handover"]; n[0] == 0 || n[1]+n[2] > 0 {
		t.Errorf("locks on each instance: %v", n)
	}
}
