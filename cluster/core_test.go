package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
)

// sight is what a core is shown.
type sight struct {
	facts  voters.Facts
	term   uint64 // zero: it does not lead
	leader nodeid.ID
}

func (s *sight) Facts() (voters.Facts, uint64, bool) { return s.facts, s.term, s.term != 0 }
func (s *sight) Guide() nodeid.ID                    { return s.leader }
func (s *sight) Leader() (nodeid.ID, string) {
	if s.leader.IsZero() {
		return s.leader, ""
	}
	return s.leader, addrOf(1)
}

// replicas are the first n replicas of the group that a test core belongs to; the first is its own.
func replicas(n uint64) (list []Voter) {
	for i := range n {
		list = append(list, Voter{Raft: i + 1, Instance: nodeidtest.ID(i + 1), Addr: addrOf(int(i)), Life: 1})
	}
	return list
}

const testGroup = 77

// member is the core of a voter of a group of three, which has looked around.
func member(t *testing.T, s *sight) (c *Core, now time.Duration) {
	t.Helper()
	settings := founding.Settings{Replicas: 3, Voters: 3, SessionTTL: time.Second}
	c = NewCore(CoreConfig{Sight: s, Founding: founding.Config{
		Instance: nodeidtest.ID(1), Name: "a", Addr: addrOf(0), Settings: settings, Durable: true, Life: 2,
		Stored: &founding.State{Instance: nodeidtest.ID(1), Phase: founding.Member, Group: testGroup, Settings: settings, At: 1, Raft: 1, Voters: replicas(3)},
	}})
	now = time.Minute
	for range 3 {
		turn(c, now)
		now += 10 * time.Second
	}
	if !c.settled() {
		t.Fatal("the core still looks around")
	}
	return c, now
}

// turn is what an owner does, with nothing to store.
func turn(c *Core, now time.Duration) ([]founding.Event, Acts) {
	out := c.Tick(now, 1, founding.Random{Instance: nodeidtest.ID(9), Group: 9, Spread: 9})
	return c.Follow(now, out.Events), c.Act(now, 99, 5)
}

func addresses(acts Acts) (list []string) {
	for _, e := range acts.Errands {
		list = append(list, e.Addr)
	}
	return list
}

// TestALeaderTellsAfterItsLook: a leader that applies a configuration before it has looked for the first
// time tells the replica that is left out all the same, and one that does not lead tells none.
func TestALeaderTellsAfterItsLook(t *testing.T) {
	for term, want := range map[uint64][]string{0: nil, 5: {addrOf(2)}} {
		s := &sight{}
		c, now := member(t, s)
		c.Look()
		turn(c, now) // a look that shows no lead
		s.term = term
		c.Configured(now, testGroup, 9, replicas(2))
		events, acts := turn(c, now+1)
		if len(events) != 1 || events[0].Kind != founding.Heard || len(events[0].Voters) != 2 {
			t.Errorf("the host is told %+v", events)
		}
		if got := addresses(acts); got != nil || acts.Next > now+lead.Pause {
			t.Errorf("before the look these are told: %q; the next turn is due after %v", got, acts.Next-now)
		}
		_, acts = turn(c, now+lead.Pause)
		if got := addresses(acts); !slices.Equal(got, want) {
			t.Errorf("in term %d these are told: %q, want %q", term, got, want)
		}
		if _, acts = turn(c, now+2*lead.Pause); len(acts.Errands) > 0 {
			t.Errorf("told again: %q", addresses(acts))
		}
	}
}

// TestAnAnnouncementNamesTheNewest: one that was not heard is made again a second later, with what is
// known by then, and none of an earlier life is.
func TestAnAnnouncementNamesTheNewest(t *testing.T) {
	c, now := member(t, &sight{})
	c.Stray(nodeidtest.ID(8), addrOf(8))
	c.announce(nodeidtest.ID(7), addrOf(7), 2)
	_, acts := turn(c, now)
	if got := addresses(acts); !slices.Equal(got, []string{addrOf(8), addrOf(7)}) {
		t.Fatalf("told: %q", got)
	}
	for _, e := range acts.Errands {
		c.Done(now, e, founding.Silent, nil)
	}
	c.Configured(now, testGroup, 9, replicas(2))
	_, acts = turn(c, now)
	if len(acts.Errands) > 0 || acts.Next > now+announcePause {
		t.Fatalf("told at once: %q; the next turn is due after %v", addresses(acts), acts.Next-now)
	}
	_, acts = turn(c, now+announcePause)
	if len(acts.Errands) != 1 || !slices.Equal(acts.Errands[0].Body, c.announcementTo(nodeidtest.ID(7))) || c.At() != 9 {
		t.Fatalf("told again: %q, as of configuration %d", addresses(acts), c.At())
	}
	c.Done(now, acts.Errands[0], founding.Silent, nil)
	if _, acts = turn(c, now+time.Minute); len(acts.Errands) > 0 {
		t.Error("it was tried more often than asked for")
	}
	c.announce(nodeidtest.ID(7), addrOf(7), 2)
	if err := c.Founding.Recover(now+time.Minute, testGroup); err != nil {
		t.Fatal(err)
	}
	events, acts := turn(c, now+time.Minute)
	if len(events) != 1 || events[0].Kind != founding.Restarted || len(acts.Errands) > 0 || len(c.Voters()) > 0 {
		t.Errorf("a new life tells %q of the group of the one before; %+v", addresses(acts), events)
	}
}

// TestARouteEnds: an attempt follows a few instances that name others, and no instance that names itself.
func TestARouteEnds(t *testing.T) {
	s := &sight{leader: nodeidtest.ID(2)}
	c, now := member(t, s)
	r := c.Consult(now, nil, 0, 99, 5)
	if r.Counsel != nil || r.To != s.leader || r.Question != (Consultation{Group: testGroup, Instance: nodeidtest.ID(1), Raft: c.Raft()}) {
		t.Fatalf("it asks %+v", r)
	}
	if again := r; again.Advised(Advice{Leader: r.To, Addr: addrOf(1)}) || again.Advised(Advice{}) {
		t.Error("it goes on with an instance that names itself, or none")
	}
	hops := 0
	for id := uint64(3); r.Advised(Advice{Leader: nodeidtest.ID(id%2 + 3), Addr: addrOf(1)}); id++ {
		hops++
	}
	if hops != consultHops {
		t.Errorf("%d instances are asked after the first", hops)
	}
	if r.Advised(Advice{Counsel: &Counsel{}}) || r.Counsel == nil {
		t.Error("it goes on after the leader has answered")
	}
	s.term = 5
	if r := c.Consult(now+lead.Pause, nil, 0, 99, 5); r.Counsel == nil || r.Counsel.Leader != nodeidtest.ID(1) {
		t.Error("a leader asks another instance")
	}
}
