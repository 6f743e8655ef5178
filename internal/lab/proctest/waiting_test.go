//go:build linux

package proctest

import (
	"fmt"
	"slices"
	"time"
)

// readyTime is the time that an instance of a healthy group needs to become ready.
const readyTime = 12 * time.Second

// failover is the longest time without a leader in a group with a majority.
const failover = 2 * time.Second

// gossipTime is the longest time until every instance knows all members through gossip.
const gossipTime = 3 * time.Minute

// waitReady waits until the instances have reported for the first time that they are ready.
func (w *world) waitReady(within time.Duration, instances ...*instance) {
	w.t.Helper()
	limit := time.After(within)
	for _, in := range instances {
		select {
		case <-in.ready:
		case <-limit:
			w.t.Fatalf("%s is not ready %v after its start: %s", in.life, time.Since(in.began).Round(time.Second/10),
				in.describe())
		}
		if in.gone() {
			w.t.Fatalf("%s has ended before it was ready:\n%s", in.life, in.logTail(10))
		}
	}
}

func (w *world) waitAllReady(within time.Duration) {
	w.t.Helper()
	limit := time.Now().Add(within)
	for _, in := range w.living() {
		if _, err := in.ask("ready", "", max(time.Until(limit), time.Millisecond)); err != nil {
			w.t.Fatalf("not ready again within %v: %v", within, err)
		}
	}
}

func (w *world) leader(of ...*instance) *instance {
	w.t.Helper()
	var found *instance
	w.until(slack*failover, "an instance leads", func() bool {
		for _, in := range of {
			if !in.gone() && in.status().Leading {
				found = in
				return true
			}
		}
		return false
	})
	return found
}

func (w *world) until(within time.Duration, what string, holds func() bool) {
	w.t.Helper()
	for limit := time.Now().Add(within); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			w.t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// waitVoters waits until each of the living instances reports as many voters as their group should
// have.
func (w *world) waitVoters(within time.Duration, living ...*instance) {
	w.t.Helper()
	candidates := len(living)
	if w.founders != nil {
		candidates = 0
		for _, in := range living {
			if slices.Contains(w.founders, in.name) {
				candidates++
			}
		}
	}
	want := min(max(w.voters, 1), candidates)
	if w.voters == 0 {
		want = min(3, candidates)
	}
	want -= 1 - want%2 // rounded down to an odd number
	for _, in := range living {
		w.until(within, fmt.Sprintf("%s knows %d voters", in.life, want), func() bool { return voters(in) == want })
	}
}

// voters counts the voters that an instance reports, without learners.
func voters(in *instance) (n int) {
	for _, v := range in.status().Voters {
		if v.Votes {
			n++
		}
	}
	return n
}

// waitMembers waits until the leader lists exactly these instances.
func (w *world) waitMembers(within time.Duration, living ...*instance) {
	w.t.Helper()
	var want []string
	for _, in := range living {
		want = append(want, in.name)
	}
	slices.Sort(want)
	for _, in := range living {
		w.until(within, fmt.Sprintf("the leader lists %[2]v and no other to %[1]s", in.life, want), func() bool {
			var seen []string
			e, err := in.ask("members", "", time.Second)
			if err != nil || e.Status == nil {
				return false
			}
			for _, m := range e.Status.Voters {
				seen = append(seen, m.Name)
			}
			slices.Sort(seen)
			return slices.Equal(seen, want)
		})
	}
}

// granted checks that an instance is granted a free lock within a time, and releases the lock.
func (w *world) granted(in *instance, within time.Duration) {
	w.t.Helper()
	key := fmt.Sprintf("asked/%s/%d", in.life, time.Now().UnixNano())
	if _, err := in.ask("lock", key, within); err != nil {
		w.t.Fatalf("a free lock: %v (%s)", err, in.describe())
	}
	if _, err := in.ask("unlock", key, within); err != nil {
		w.t.Errorf("%v", err)
	}
}

func (w *world) notGranted(in *instance, during time.Duration) {
	w.t.Helper()
	key := fmt.Sprintf("refused/%s/%d", in.life, time.Now().UnixNano())
	if e, err := in.ask("lock", key, during); err == nil {
		w.t.Errorf("%s was granted a lock (token %d), although it must not be", in.life, e.Token)
	}
}

// keepsGranting checks for a time that each of the given instances is granted free locks without a
// noticeable break.
func (w *world) keepsGranting(during time.Duration, instances ...*instance) {
	w.t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		for _, in := range instances {
			w.granted(in, slack*failover)
		}
	}
}
