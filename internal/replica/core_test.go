package replica

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/keeper"
)

// heard records the calls of a core to its Host, Keeper and Cluster, in order.
type heard struct {
	said   []string
	rounds int
	book   map[uint64]founding.Voter
}

func (h *heard) says(format string, args ...any) {
	h.said = append(h.said, fmt.Sprintf(format, args...))
}

func (h *heard) RoleChanged()                { h.says("role") }
func (h *heard) Configured()                 { h.says("configured") }
func (h *heard) Answering(r *lockfsm.Result) { h.says("answering: %v", r.Kind) }
func (h *heard) Born() clock.Time            { h.says("born"); return 1 }
func (h *heard) Retired(err error)           { h.says("retired: %v", err) }

type toKeeper struct{ *heard }

func (k toKeeper) Role(r keeper.Role) {
	k.says("keeper: term %d, leading %v, leader %s", r.Term, r.Leading, r.Leader.Addr)
}
func (k toKeeper) Leads(l keeper.Leadership) {
	k.says("keeper: leads in term %d with %d sessions, born %v at %d, grace %v over %v, unsearched %v, rules %d", l.Term,
		len(l.Sessions), l.Born, l.BornAt, l.Grace, l.GraceOver, l.Unsearched, l.Rules)
}
func (k toKeeper) Applied(r *lockfsm.Result) { k.says("keeper: %v is applied", r.Kind) }
func (k toKeeper) Yield(id lockfsm.SessionID, n lockfsm.Number) {
	k.says("keeper: stay %d of %d yields", n, id)
}
func (k toKeeper) Confirmed(term, round uint64) {
	k.rounds++
	k.says("keeper: round %d of term %d", round, term)
}
func (k toKeeper) Searched(term uint64, _ lockfsm.Search) {
	k.says("keeper: searched in term %d", term)
}
func (k toKeeper) ProposeAdopt(term uint64, ttl time.Duration, settings []byte, b session.Budgets) {
	k.says("keeper: adopt in term %d, ttl %v, %s, %+v", term, ttl, settings, b)
}
func (k toKeeper) ProposeRaise(term uint64, version uint32) {
	k.says("keeper: raise to %d in term %d", version, term)
}

type toCluster struct{ *heard }

func (c toCluster) Voter(raft uint64) (founding.Voter, bool) { v, ok := c.book[raft]; return v, ok }
func (c toCluster) Log(raft uint64, log founding.Log) {
	c.says("cluster: log of %d is %d %d %d", raft, log.Term, log.LastTerm, log.LastIndex)
}
func (c toCluster) Configured(group, at uint64, voters []founding.Voter) {
	c.says("cluster: %d has %d voters at %d", group, len(voters), at)
}
func (c toCluster) Applied(group uint64, a founding.Configuration) {
	c.says("cluster: %d has applied %d, incoming %d", group, a.At, len(a.Incoming))
}
func (c toCluster) BornApplied(group uint64) { c.says("cluster: %d is born", group) }
func (c toCluster) Adopt(group uint64, s founding.Settings) {
	c.says("cluster: %d adopts %+v", group, s)
}
func (c toCluster) Look() { c.says("cluster: look") }

func (h *heard) takes(t *testing.T, when string, want ...string) {
	t.Helper()
	if !slices.Equal(h.said, want) {
		t.Errorf("%s: it says %q, want %q", when, h.said, want)
	}
	h.said = nil
}

// configuration returns a configuration with the replicas 1 to n, on instances with the same
// numbers. The last replica is a learner.
func configuration(n uint64) (c raftlog.Configuration) {
	c.Index = 7
	for id := uint64(1); id <= n; id++ {
		place := founding.Voter{Raft: id, Instance: nodeidtest.ID(id), Addr: fmt.Sprintf("log:%d", id)}
		c.Members = append(c.Members, raftlog.Member{ID: id, Context: founding.AppendPlace(nil, place)})
		if id < n {
			c.Voters = append(c.Voters, id)
		}
	}
	return c
}

// TestARoleIsToldInOrder checks that the keeper gets the leader's address from the address book or
// the configuration, and again when the book changes.
func TestARoleIsToldInOrder(t *testing.T) {
	h := &heard{book: map[uint64]founding.Voter{}}
	c := NewCore(CoreConfig{Group: 1, ID: 4, Keeper: toKeeper{h}, Cluster: toCluster{h}, Host: h})
	c.Configured(configuration(4))
	h.takes(t, "a configuration", "configured", "cluster: 1 has 4 voters at 7",
		"cluster: 1 has applied 7, incoming 0")
	c.Role(raftlog.Role{Term: 5, LastTerm: 3, LastIndex: 9})
	h.takes(t, "no leader", "keeper: term 5, leading false, leader ", "role",
		"cluster: log of 4 is 5 3 9", "cluster: look")
	c.Role(raftlog.Role{Term: 5, Leader: 2})
	h.takes(t, "a leader", "keeper: term 5, leading false, leader log:2", "role",
		"cluster: log of 4 is 0 0 0", "cluster: look")
	h.book[2] = founding.Voter{Raft: 2, Instance: nodeidtest.ID(2), Addr: "book:2"}
	c.TellKeeper()
	h.takes(t, "the leader has moved", "keeper: term 5, leading false, leader book:2")
	if r := c.View.Role(); r.Leader != 2 {
		t.Errorf("View has the role %+v", r)
	}
	c.Retired(errors.New("over"))
	h.takes(t, "the end", "keeper: term 6, leading false, leader ", "retired: over")
}

// TestWhatLeadingBrings checks that only the leader's replica passes results to its host and then
// to its keeper, and that the founding is reported once.
func TestWhatLeadingBrings(t *testing.T) {
	c, _, h := leading(t)
	h.takes(t, "the birth and the lead", "born", "cluster: 1 is born",
		"keeper: term 2, leading true, leader ", "role", "cluster: log of 4 is 0 0 0", "cluster: look",
		"keeper: leads in term 2 with 0 sessions, born true at 1, grace 0s over true, unsearched false, rules "+
			fmt.Sprint(lockfsm.RulesVersion), "cluster: look")
	batch := lockfsm.Command{Kind: lockfsm.EndGrace}.Append(nil)
	if err := c.Apply(2, 2, batch); err != nil {
		t.Fatal(err)
	}
	h.takes(t, "a result while leading", "answering: endgrace", "keeper: endgrace is applied")
	c.Role(raftlog.Role{Term: 3, Leader: 1})
	h.said = nil
	if err := c.Apply(3, 3, batch); err != nil {
		t.Fatal(err)
	}
	h.takes(t, "a result while following")
	if err := c.Restore(3, 3, c.Machine().Snapshot(nil)); err != nil {
		t.Fatal(err)
	}
	h.takes(t, "a snapshot of a group that is born")
	if c.View.Rules() != lockfsm.RulesVersion {
		t.Errorf("View has version %d of the rules", c.View.Rules())
	}
}

// TestWhatAViewShows checks that the instance and the address of a raft ID come from the address
// book, or else from the configuration.
func TestWhatAViewShows(t *testing.T) {
	h := &heard{book: map[uint64]founding.Voter{3: {Raft: 3, Instance: nodeidtest.ID(33), Addr: "book:3"}}}
	c := NewCore(CoreConfig{Group: 1, ID: 4, Keeper: toKeeper{h}, Cluster: toCluster{h}, Host: h})
	book, v, none := toCluster{h}, c.View, (*View)(nil)
	if v.Votes() || v.IsNamed() || v.Speaks(book, 1, nodeidtest.ID(1)) {
		t.Error("a replica without a configuration claims a place in one")
	}
	c.Configured(configuration(4))
	if v.Votes() || !v.IsNamed() {
		t.Error("the last replica should be a learner")
	}
	for _, s := range []struct {
		view           *View
		raft, instance uint64
		want           bool
	}{
		{v, 1, 1, true}, {v, 1, 2, false}, {v, 5, 5, false}, {v, 3, 33, true}, {v, 3, 3, false},
		{none, 3, 33, true}, {none, 1, 1, false},
	} {
		if got := s.view.Speaks(book, s.raft, nodeidtest.ID(s.instance)); got != s.want {
			t.Errorf("instance %d speaks as %d: %v", s.instance, s.raft, got)
		}
	}
	for raft, want := range map[uint64]string{1: "log:1", 3: "book:3", 9: ""} {
		if got := v.Place(book, raft).Addr; got != want {
			t.Errorf("replica %d is at %q, want %q", raft, got, want)
		}
	}
	if none.Place(book, 3).Addr != "book:3" || none.Place(book, 1).Addr != "" ||
		none.Leader(book) != (founding.Voter{}) {
		t.Error("an instance without a replica has another place than the book's")
	}
	if ids := v.Of(nodeidtest.ID(2)); !slices.Equal(ids, []uint64{2}) {
		t.Errorf("instance 2 has replicas %d", ids)
	}
	self := nodeidtest.ID(4)
	only := func(id uint64) func(nodeid.ID) bool {
		return func(instance nodeid.ID) bool { return instance == nodeidtest.ID(id) }
	}
	if len(v.Others(self)) != 3 || v.OthersConnected(self, only(4)) || !v.OthersConnected(self, only(2)) {
		t.Errorf("the others are %+v", v.Others(self))
	}
}

// TestQueuedMakesStaysYield checks that the keeper is told of a stay that a queued request is about
// to wait for.
func TestQueuedMakesStaysYield(t *testing.T) {
	c, _, h := leading(t)
	new(Core).Queued([]byte("without a machine"))
	open := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}, TTL: time.Second}
	stamp := lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: 1 << 42}
	batch := stamp.Append(open.Append(lockfsm.Command{Kind: lockfsm.EndGrace}.Append(nil)))
	open.Nonce[0] = 2
	if err := c.Apply(2, 2, open.Append(batch)); err != nil {
		t.Fatal(err)
	}
	batch = nil
	var ids []lockfsm.SessionID
	for _, s := range c.Machine().Sessions() {
		attach := lockfsm.Command{Kind: lockfsm.Attach, Session: s.ID, Epoch: 1, Number: 1, Nonce: s.Nonce}
		batch, ids = attach.Append(batch), append(ids, s.ID)
	}
	ask := lockfsm.Command{Kind: lockfsm.Acquire, Session: ids[0], Epoch: 1, Number: 1,
		Key: "k", Sticky: true}
	if err := c.Apply(3, 2, ask.Append(batch)); err != nil {
		t.Fatal(err)
	}
	h.said = nil
	ask.Session = ids[1]
	c.Queued(ask.Append(nil))
	h.takes(t, "a request", fmt.Sprintf("keeper: stay 1 of %d yields", ids[0]))
}
