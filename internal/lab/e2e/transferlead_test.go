package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// An operator moves the lead to a voter, from the leader, from a follower and from an instance
// without a vote. No lock is lost, and the audit log has who moved it from where to where and why.
func TestTransferLead(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4, func(c *mortise.Config) { c.Replicas = 4 })
		f.settle()
		plainly := -1
		for i, n := range f.nodes {
			if !n.Status().Votes {
				plainly = i
			}
		}
		held := f.lock(plainly, "held")
		for moved, from := range []string{"leader", "follower", "member"} {
			was := f.leader()
			to := f.votingFollower()
			caller := map[string]int{"leader": was, "follower": to, "member": plainly}[from]
			name := f.nodes[to].config.Name
			began := time.Now()
			if err := f.nodes[caller].TransferLead(brief(t), name, "a "+from+" asks"); err != nil {
				t.Fatalf("from the %s: %v", from, err)
			}
			took := time.Since(began)
			if now := f.leader(); now != to || took > failoverLimit {
				t.Errorf("from the %s: node %d leads after %v, want %d", from, now, took, to)
			}
			unlock(t, f.lock(was, "free"))
			if err := held.Err(); err != nil {
				t.Errorf("from the %s: a lock is lost: %v", from, err)
			}
			ends, err := f.nodes[was].Audit(brief(t))
			if err != nil || len(ends) != moved+1 {
				t.Fatalf("the audit log has %+v, %v", ends, err)
			}
			e := ends[moved]
			want := "from " + f.nodes[was].config.Name + " to " + name + ": a " + from + " asks"
			if string(e.Kind) != "lead" || e.By != f.nodes[caller].config.Name || e.Reason != want || e.Key != "" ||
				e.Cause != "" {
				t.Errorf("the audit log has %+v, want %q", e, want)
			}
		}
		leader := f.nodes[f.leader()]
		term := leader.Status().Term
		if err := f.nodes[plainly].TransferLead(brief(t), leader.config.Name, "again"); err != nil {
			t.Errorf("to the leader: %v", err)
		}
		for name, want := range map[string]string{"absent": "no instance with the root secret has the name",
			f.nodes[plainly].config.Name: "has no vote"} {
			err := leader.TransferLead(brief(t), name, "why")
			if !errors.Is(err, mortise.ErrBadRequest) || !strings.Contains(err.Error(), want) {
				t.Errorf("to %s: %v, want %s", name, err, want)
			}
		}
		for _, q := range [][2]string{{"", "why"}, {"a\x1b", "why"}, {strings.Repeat("n", 129), "why"}, {"node-1", "\x1b"}} {
			if err := leader.TransferLead(brief(t), q[0], q[1]); !errors.Is(err, mortise.ErrBadRequest) {
				t.Errorf("%q: %v", q, err)
			}
		}
		if ends, err := leader.Audit(brief(t)); err != nil || len(ends) != 3 || leader.Status().Term != term {
			t.Errorf("a move that was refused, or to the leader, is in the audit log, or has moved the lead: %v, %v", ends, err)
		}
		unlock(t, held)
		f.nothingLeft()
	})
}

// A voter that the leader does not reach, or that cannot take over, does not get the lead.
func TestTransferLeadToAVoterThatCannotTakeIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, func(c *mortise.Config) { c.SessionTTL = time.Minute })
		leader := f.leader()
		away := (leader + 1) % 3
		name := f.nodes[away].config.Name
		f.isolate(away)
		for turn, want := range []string{"did not take it over in time", "is not in contact with"} {
			time.Sleep(time.Duration(turn) * 2 * time.Second)
			err := f.nodes[(leader+2)%3].TransferLead(brief(t), name, "why")
			if !errors.Is(err, mortise.ErrNotReady) || !strings.Contains(err.Error(), want) {
				t.Errorf("call %d after the cut: %v, want %s", turn, err, want)
			}
			unlock(t, f.lock(leader, "free"))
		}
		f.rejoin(away)
		time.Sleep(5 * time.Second)
		if err := f.nodes[away].TransferLead(brief(t), name, "it is back"); err != nil || f.leader() != away {
			t.Errorf("after the cut node %d leads: %v", f.leader(), err)
		}
	})
}
