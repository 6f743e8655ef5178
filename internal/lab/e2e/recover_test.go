package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func (f *fleet) reborn(root string, i int, wiped bool) {
	f.t.Helper()
	if wiped {
		if err := os.RemoveAll(filepath.Join(root, f.config(i, 3).Name)); err != nil {
			f.t.Fatal(err)
		}
	}
	f.start(i, durableConfig(f, root, i, i))
}

// TestRecover loses two of three directories. After Recover a new group must be founded, and tokens
// must rise.
func TestRecover(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := newFleet(t)
		for i := range 3 {
			f.start(i, durableConfig(f, root, i, i))
		}
		f.ready()
		old := f.nodes[0].Status().Group
		before := f.lock(0, "k")
		if err := f.nodes[0].Recover(t.Context(), old); err == nil {
			t.Fatal("a group with a leader was given up")
		}
		for i := range 3 {
			f.crash(i)
		}
		f.reborn(root, 0, false)
		f.reborn(root, 1, true)
		f.reborn(root, 2, true)
		time.Sleep(2 * time.Minute)
		for i := range 3 {
			s := f.nodes[i].Status()
			t.Logf("%v", s)
			if s.Attached {
				t.Fatalf("a group with one of three voters goes on:\n%v", s)
			}
		}
		if err := f.nodes[0].Recover(t.Context(), "1234"); err == nil {
			t.Error("a group that this instance does not belong to was given up")
		}
		if err := f.nodes[0].Recover(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		f.ready()
		if got := f.nodes[0].Status().Group; got == old {
			t.Errorf("the group is still %s", got)
		}
		after := f.lock(1, "k")
		if after.Token() <= before.Token() {
			t.Errorf("token %d after %d", after.Token(), before.Token())
		}
		unlock(t, after)
		f.nothingLeft()
	})
}

// TestRecoveredWithoutTheLate checks that an instance that was down during the recovery joins the
// new group.
func TestRecoveredWithoutTheLate(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := newFleet(t)
		for i := range 3 {
			f.start(i, durableConfig(f, root, i, i))
		}
		f.ready()
		old := f.nodes[0].Status().Group
		c := durableConfig(f, root, 3, 3) // a member without a vote, or a learner
		f.start(3, c)
		f.ready()
		for i := range 4 {
			f.crash(i)
		}
		f.reborn(root, 0, false)
		f.reborn(root, 1, true)
		f.reborn(root, 2, true)
		time.Sleep(10 * time.Second)
		if err := f.nodes[0].Recover(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		f.ready()
		next := f.nodes[0].Status().Group
		f.start(3, c)
		f.ready()
		if got := f.nodes[3].Status().Group; got != next || got == old {
			t.Errorf("the late one belongs to group %s, the others to %s", got, next)
		}
		unlock(t, f.lock(3, "k"))
	})
}

// TestDurableVoterIsReplaced checks that a voter that was replaced returns without a vote, and may
// get a vote only under another ID.
func TestDurableVoterIsReplaced(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		root := t.TempDir()
		f := newFleet(t)
		for i := range 4 {
			f.start(i, durableConfig(f, root, i, i))
		}
		f.ready()
		f.wantVotes(3)
		gone := f.follower()
		for !f.nodes[gone].Status().Votes {
			gone = (gone + 1) % 4
		}
		before := f.nodes[gone].Replica().ID
		f.crash(gone)
		time.Sleep(50 * time.Second)
		if got := f.votes(); got != 2 {
			t.Errorf("%d vote before the minute is over", got)
		}
		time.Sleep(20 * time.Second)
		f.wantVotes(3)
		f.start(gone, durableConfig(f, root, gone, gone))
		f.ready()
		f.wantVotes(3)
		if r := f.nodes[gone].Replica(); r != nil && r.ID == before {
			t.Errorf("the one that was replaced has come back under its old raft ID")
		}
		unlock(t, f.lock(gone, "k"))
		f.nothingLeft()
	})
}
