package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func (f *fleet) cut(one, other []int) {
	for _, a := range one {
		for _, b := range other {
			f.net.Cut(host(a), host(b))
		}
	}
}

func (f *fleet) healAll(n int) {
	for a := range n {
		for b := range n {
			if a != b {
				f.net.Heal(host(a), host(b))
			}
		}
	}
}

// TestAMinuteApart makes partitions of every shape for a minute. Afterwards there must be only the
// group from before, with the right number of voters.
func TestAMinuteApart(t *testing.T) {
	slow.UnderRace(t)
	for name, shape := range map[string]func(f *fleet, leader int){
		"a follower alone": func(f *fleet, l int) { f.isolate((l + 1) % 5) },
		"the leader alone": func(f *fleet, l int) { f.isolate(l) },
		"two and three": func(f *fleet,
			l int) {
			f.cut([]int{l, (l + 1) % 5}, []int{(l + 2) % 5, (l + 3) % 5, (l + 4) % 5})
		},
		"two others": func(f *fleet, l int) {
			f.cut([]int{(l + 1) % 5, (l + 2) % 5},
				[]int{l, (l + 3) % 5, (l + 4) % 5})
		},
		"one reaches both":    func(f *fleet, l int) { f.cut([]int{l, (l + 1) % 5}, []int{(l + 3) % 5, (l + 4) % 5}) },
		"leader and follower": func(f *fleet, l int) { f.cut([]int{l}, []int{(l + 1) % 5}) },
	} {
		if testing.Short() && !strings.HasPrefix(name, "t") { // at a merge half of the shapes
			continue
		}
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 5)
				f.settle()
				group := f.nodes[0].Status().Group
				before := f.lock(f.leader(), "k")
				unlock(t, before)
				shape(f, f.leader())
				time.Sleep(time.Minute)
				f.healAll(5)
				f.ready()
				time.Sleep(30 * time.Second) // time for gossip to find all members again
				f.wantVotes(3)
				for i, n := range f.nodes {
					if got := n.Status().Group; got != group {
						t.Errorf("node %d belongs to group %s, and the group was %s", i, got, group)
					}
					after := f.lock(i, "k")
					if after.Token() <= before.Token() {
						t.Errorf("token %d after %d", after.Token(), before.Token())
					}
					unlock(t, after)
				}
				f.nothingLeft()
			})
		})
	}
}

// TestSettingsAreAdopted changes settings by a rolling deployment. The group must use the old
// values until all instances name the new values.
func TestSettingsAreAdopted(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 5)
		f.wantVotes(3)
		for i := range 5 {
			f.depart(i, true)
			c := f.config(i, 5)
			c.Voters, c.SessionTTL = 5, 3*time.Second
			f.start(i, c)
			f.ready()
			if i < 4 {
				h, err := f.nodes[i].Health(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if text := fmt.Sprint(h.Differs); len(h.Differs) != 2 {
					t.Errorf("after %d of 5 the health says of the settings: %s", i+1, text)
				}
				if got := f.votes(); got > 3 {
					t.Errorf("%d vote although not all say so", got)
				}
			}
		}
		time.Sleep(20 * time.Second)
		f.wantVotes(5)
		h, err := f.nodes[0].Health(t.Context())
		if err != nil || len(h.Differs) != 0 {
			t.Errorf("when all say the same: %v, %v", err, h)
		}
		t.Logf("%v", h)
	})
}
