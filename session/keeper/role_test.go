package keeper

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
)

func TestSilentUntilItsFirstEntryIsAppliedAndBorn(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	open := lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}, TTL: benchTTL}
	silent := func(when string) {
		t.Helper()
		b.send(nodeidtest.ID(1), open, b.attachCmd(3, 1))
		b.renew(nodeidtest.ID(1), 3, 1, 1)
		b.core.Confirmed(b.now, b.term, 1)
		b.turn()
		if b.said(nodeidtest.ID(1)) != "" || len(b.kinds) != 0 || b.round != 0 {
			t.Fatalf("%s: told %q, proposed %v", when, b.said(nodeidtest.ID(1)), b.kinds)
		}
	}
	b.core.Role(b.now, Role{Term: 5, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	silent("before its first entry")
	b.core.Applied(b.now, []lockfsm.Result{{Kind: lockfsm.Open, Code: lockfsm.Done, Session: 3, TTL: benchTTL}})
	b.leads()
	silent("before Born")
	b.core.AllBound(b.now)
	b.step()
	b.want(nodeidtest.ID(1), "redirect 5 9") // peers that asked for the leader are redirected
	b.send(nodeidtest.ID(1), open)
	b.step()
	b.want(nodeidtest.ID(1), "opened done")
}

func TestFollowersRedirectAndTellAskersLater(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	b.renew(nodeidtest.ID(1), 3, 1, 1)
	b.send(nodeidtest.ID(1), b.attachCmd(3, 1))
	b.turn()
	b.want(nodeidtest.ID(1), "redirect 0 0")
	b.core.Role(b.now, Role{Term: 4, Leader: nodeid.Endpoint{ID: nodeidtest.ID(2), Addr: "two"}})
	b.turn()
	b.want(nodeidtest.ID(1), "redirect 4 2")
	if string(b.replies[nodeidtest.ID(1)][0].Addr) != "two" {
		t.Errorf("address %q", b.replies[nodeidtest.ID(1)][0].Addr)
	}
	b.core.Role(b.now, Role{Term: 5})
	b.turn()
	b.want(nodeidtest.ID(1), "") // this peer was redirected before and has not asked again
	b.send(nodeidtest.ID(1), b.attachCmd(3, 2))
	b.turn()
	b.want(nodeidtest.ID(1), "redirect 5 0")
	b.core.Down(b.now, nodeidtest.ID(1))
	b.core.Role(b.now, Role{Term: 5, Leader: nodeid.Endpoint{ID: nodeidtest.ID(3), Addr: "three"}})
	b.turn()
	b.want(nodeidtest.ID(1), "")
	if s := b.core.Status(); s.Peers+s.Askers != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// TestItsOwnInstanceLearnsOfEachLeader checks that the clients of a voter's own instance learn of a
// new leader, although they have never asked this voter.
func TestItsOwnInstanceLearnsOfEachLeader(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	self := nodeidtest.ID(9)
	b.core.Self = self
	b.core.Role(b.now, Role{Term: 4, Leader: nodeid.Endpoint{ID: nodeidtest.ID(2), Addr: "two"}})
	b.turn()
	b.want(self, "redirect 4 2")
	b.core.Role(b.now, Role{Term: 5})
	b.turn()
	b.want(self, "")
	b.core.Role(b.now, Role{Term: 5, Leading: true, Leader: nodeid.Endpoint{ID: self, Addr: "self"}})
	b.turn()
	b.want(self, "") // it cannot attach yet
	b.leads()
	b.core.AllBound(b.now)
	b.step()
	b.want(self, "redirect 5 9")
	if s := b.core.Status(); s.Peers+s.Askers != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// TestOneRedirectNamesTheNewestLeader checks that a peer gets one redirect for each turn, whether
// it has asked, was attached or is this voter's own instance, and that the redirect names the
// leader at the end of the turn. A client that is sent to the former leader, or to none, loses
// time.
func TestOneRedirectNamesTheNewestLeader(t *testing.T) {
	t.Parallel()
	self, other := nodeidtest.ID(9), nodeidtest.ID(1)
	two, three := nodeid.Endpoint{ID: nodeidtest.ID(2), Addr: "two"}, nodeid.Endpoint{ID: nodeidtest.ID(3), Addr: "three"}
	b := newBench(t, 0)
	b.core.Self = self
	b.core.Role(b.now, Role{Term: 4, Leader: two})
	b.turn()
	b.want(self, "redirect 4 2")
	for _, p := range []nodeid.ID{self, other} {
		b.send(p, b.attachCmd(3, 1))
	}
	b.core.Role(b.now, Role{Term: 5, Leader: three})
	b.turn()
	b.want(self, "redirect 5 3")
	b.want(other, "redirect 5 3")

	b = leadingBench(t)
	b.open(other)
	b.core.Role(b.now, Role{Term: 6})
	b.core.Role(b.now, Role{Term: 6, Leader: three})
	b.turn()
	b.want(other, "redirect 6 3")
	b.send(other, b.attachCmd(3, 1))
	b.core.Role(b.now, Role{Term: 7, Leading: true, Leader: nodeid.Endpoint{ID: self, Addr: "self"}})
	b.turn()
	b.want(other, "") // it is redirected once this leader serves
	b.term = 7
	b.leads()
	b.turn()
	b.want(other, "redirect 7 9")
}

func TestAskersAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0)
	for i := range uint64(3 * maxAskers) {
		p := nodeidtest.ID(i + 1)
		b.send(p, b.attachCmd(3, 1))
	}
	b.turn()
	if s := b.core.Status(); s.Askers != maxAskers || s.Peers != 0 {
		t.Errorf("%+v", s)
	}
	b.core.Role(b.now, Role{Term: 4, Leader: nodeid.Endpoint{ID: nodeidtest.ID(2), Addr: "two"}})
	b.turn()
	b.want(nodeidtest.ID(1), "")
	b.want(nodeidtest.ID(3*maxAskers), "redirect 4 2")
}

// TestRoleChangeThrowsAllAway checks that a change of term discards everything that waits, and that
// attached clients are redirected to the new leader.
func TestRoleChangeThrowsAllAway(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	one, two := b.open(nodeidtest.ID(1)), b.open(nodeidtest.ID(2))
	b.send(nodeidtest.ID(1), acquireCmd(one, 1, 1, "x"))
	b.renew(nodeidtest.ID(2), two, 1, 1)
	b.core.Role(b.now, Role{Term: 6, Leader: nodeid.Endpoint{ID: nodeidtest.ID(3), Addr: "three"}})
	b.turn()
	if len(b.kinds) != 0 || b.round != 0 {
		t.Fatalf("proposed %v, round %d", b.kinds, b.round)
	}
	b.want(nodeidtest.ID(1), "redirect 6 3")
	b.want(nodeidtest.ID(2), "redirect 6 3")
	if s := b.core.Status(); s.Attachments+s.Sessions+s.Renewals+s.Opens+s.Peers != 0 || s.Askers != 2 {
		t.Errorf("left behind: %+v; want nothing but the two peers that will learn of the next leader", s)
	}
	b.core.Role(b.now, Role{Term: 7})
	b.core.Role(b.now, Role{Term: 7, Leader: nodeid.Endpoint{ID: nodeidtest.ID(4), Addr: "four"}})
	b.turn()
	b.want(nodeidtest.ID(1), "redirect 7 4")
	b.want(nodeidtest.ID(2), "redirect 7 4")
	b.core.Applied(b.now, []lockfsm.Result{{Kind: lockfsm.Open, Code: lockfsm.Done, Session: 3}})
	b.turn()
	if b.core.Status().Sessions != 0 {
		t.Error("a follower keeps sessions")
	}
}

func TestOwnAddressIsNoChange(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	b.open(nodeidtest.ID(1))
	b.core.Role(b.now, Role{Term: 5, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "elsewhere"}})
	b.turn()
	if s := b.core.Status(); s.Attachments != 1 || s.Leader.Addr != "elsewhere" {
		t.Errorf("%+v", s)
	}
}

func TestReelectedLeaderInvitesItsPeersWhenReady(t *testing.T) {
	t.Parallel()
	b := leadingBench(t)
	id := b.open(nodeidtest.ID(1))
	b.core.Role(b.now, Role{Term: 6, Leading: true, Leader: nodeid.Endpoint{ID: nodeidtest.ID(9), Addr: "self"}})
	b.term = 6
	b.turn()
	b.want(nodeidtest.ID(1), "")
	b.leads()
	b.turn()
	b.want(nodeidtest.ID(1), "redirect 6 9")
	b.attach(nodeidtest.ID(1), id, 2)
}
