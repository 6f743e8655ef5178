package raftlog

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// reshape requests a random change of the configuration. It never removes r itself (rule 12 of
// cluster/voters).
func (c *cluster) reshape(r *replica) {
	config, ch := r.core.members.config, Change{}
	stay := func(ids []uint64) []uint64 {
		return slices.DeleteFunc(slices.Clone(ids), func(id uint64) bool { return id == r.id || c.random.IntN(2) == 0 })
	}
	switch c.random.IntN(6) {
	case 0:
		ch.Remove = stay(config.Learners)
	case 1:
		ch.Demote = stay(config.Voters)
	case 2:
		ch.Promote, ch.Remove = stay(config.Learners), stay(config.Voters)
	case 3:
		ch.Promote, ch.Demote = config.Learners, stay(config.Voters)
	default:
		ch = add(c.next)
	}
	if ch.Add != nil && len(config.Members) > 5 {
		return
	}
	if ch.Add == nil && len(config.Voters)+len(ch.Promote)-len(ch.Demote)-len(ch.Remove) > 5 {
		return
	}
	if !r.core.Change(r.role.Term, ch) {
		return
	}
	if r.role.Term != r.leading {
		c.check.fault("replica %d takes a change in %v and leads in %d", r.id, r.role, r.leading)
	}
	if ch.Add != nil {
		c.next++
		c.join(ch.Add.ID)
	}
	r.turn()
}

// changeRun is a run of chaos with changes of the configuration. At the end one more change must
// succeed, and all members must have the same state.
func changeRun(t *testing.T, seed uint64, steps int) (sum uint64, made int) {
	t.Helper()
	c := newCluster(t, seed, 1+int(seed%3), func(cfg *CoreConfig) {
		cfg.KeepEntries = int(seed % 4 * 8)
		cfg.EntriesInFlight = 1 + int(seed%2)
		cfg.SnapshotBytes = 1 << (9 + seed%2*4)
	})
	c.reshapes, c.next, c.slowly = true, 10, true
	loss := []float64{0, 0.02, 0.15}[seed%3]
	for n := range steps {
		if c.chaos(loss, true); n%50 == 0 {
			c.settled()
		}
	}
	c.elect()
	c.settle(30)
	for range 40 {
		lead := c.leader()
		id := c.next
		c.next++
		if !lead.core.Change(lead.role.Term, add(id)) {
			t.Fatalf("seed %d: nothing is pending and no change is accepted: %+v", seed, lead.core.Survey())
		}
		c.join(id)
		lead.turn()
		if c.settle(10); c.leader().config.has(id) {
			break
		}
	}
	c.settle(20)
	c.rests(c.leader())
	c.verify()
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
	return c.sum.Sum64(), len(c.check.configs)
}

// settled checks that a replica with Settled set has durably stored a commit index that covers the
// leader's configuration.
func (c *cluster) settled() {
	for _, l := range c.replicas {
		if l.core == nil {
			continue
		}
		for _, p := range l.core.Survey().Replicas {
			st := c.replica(p.ID).store.state
			if knows := max(st.HardState.GetCommit(), st.Snapshot.GetMetadata().GetIndex()); p.Settled &&
				knows < l.core.members.config.Index {
				c.check.fault("replica %d takes %d for settled, which knows %d to be committed, not %d", l.id, p.ID,
					knows, l.core.members.config.Index)
			}
		}
	}
}

// rests checks that in a cluster without faults all replicas are active and settled, and have the
// leader's state.
func (c *cluster) rests(lead *replica) {
	c.t.Helper()
	s := lead.core.Survey()
	if len(s.Replicas) != len(s.Config.Members) || s.Pending || s.Term != lead.role.Term {
		c.t.Errorf("in peace the leader sees %+v", s)
	}
	for i, p := range s.Replicas {
		r := c.replica(p.ID)
		switch {
		case p.ID != s.Config.Members[i].ID || !p.Active || !p.CaughtUp || !p.Full || !p.Settled ||
			p.SilentFor > 2*testTick:
			c.t.Errorf("in peace the leader sees %+v", p)
		case r.core == nil:
			c.t.Errorf("replica %d has retired: %v", r.id, r.failed)
		case r.machine != lead.machine || !reflect.DeepEqual(r.config, lead.config) ||
			!reflect.DeepEqual(r.core.members.config, lead.config):
			c.t.Errorf("replica %d has %v and %+v, the leader has %v and %+v", r.id, r.machine, r.config,
				lead.machine, lead.config)
		}
	}
}

func TestChaosWithChanges(t *testing.T) {
	slow.UnderRace(t)
	seeds, steps := 40, 20_000
	if testing.Short() {
		seeds = 10
	}
	all := 0
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			_, made := changeRun(t, uint64(seed), steps)
			all += made
		})
	}
	if all < 10*seeds {
		t.Errorf("only %d configurations in %d runs", all, seeds)
	}
}
