package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

type sight struct {
	facts  voters.Facts
	term   uint64 // zero means that the instance does not lead
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

// replicas returns the first n replicas of a test core's group. The first replica belongs to the
// core itself.
func replicas(n uint64) (list []Voter) {
	for i := range n {
		list = append(list, Voter{Raft: i + 1, Instance: nodeidtest.ID(i + 1), Addr: addrOf(int(i)), Life: 1})
	}
	return list
}

const testGroup = 77

// member returns the core of a voter of a group of three. The core has settled.
func member(t *testing.T, s *sight) (c *Core, now time.Duration) {
	t.Helper()
	settings := founding.Settings{Replicas: 3, Voters: 3, SessionTTL: time.Second}
	c = NewCore(CoreConfig{OwnState: s, Founding: founding.Config{
		Instance: nodeidtest.ID(1), Name: "a", Addr: addrOf(0), Settings: settings, Durable: true, Life: 2,
		Stored: &founding.State{Instance: nodeidtest.ID(1), Phase: founding.Member, Group: testGroup,
			Settings: settings, At: 1, Raft: 1, Voters: replicas(3)},
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

func turn(c *Core, now time.Duration) ([]founding.Event, Acts) {
	out := c.Tick(now, 1, founding.Random{Instance: nodeidtest.ID(9), Group: 9, Spread: 9})
	return c.Follow(now, out.Events), c.Act(now, 99, 5)
}

func addresses(acts Acts) (list []string) {
	for _, e := range acts.Tasks {
		list = append(list, e.Addr)
	}
	return list
}

// TestALeaderTellsAfterItsLook checks a leader that applies a configuration before its first
// evaluation. The leader must still send the configuration to the replica that was removed.
func TestALeaderTellsAfterItsLook(t *testing.T) {
	for term, want := range map[uint64][]string{0: nil, 5: {addrOf(2)}} {
		s := &sight{}
		c, now := member(t, s)
		c.Look()
		turn(c, now) // evaluates the voters while this instance does not lead
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
		if _, acts = turn(c, now+2*lead.Pause); len(acts.Tasks) > 0 {
			t.Errorf("told again: %q", addresses(acts))
		}
	}
}

// TestAnAnnouncementNamesTheNewest checks that an unanswered push is repeated a second later with
// the newest configuration, and that pushes of an earlier incarnation are dropped.
func TestAnAnnouncementNamesTheNewest(t *testing.T) {
	c, now := member(t, &sight{})
	c.RemovedPeer(nodeidtest.ID(8), addrOf(8))
	c.spread.push(nodeidtest.ID(7), addrOf(7), 2)
	_, acts := turn(c, now)
	if got := addresses(acts); !slices.Equal(got, []string{addrOf(8), addrOf(7)}) {
		t.Fatalf("told: %q", got)
	}
	for _, e := range acts.Tasks {
		c.Done(now, e, founding.Silent, nodeid.ID{}, nil)
	}
	c.Configured(now, testGroup, 9, replicas(2))
	_, acts = turn(c, now)
	if len(acts.Tasks) > 0 || acts.Next > now+pushPause {
		t.Fatalf("told at once: %q; the next turn is due after %v", addresses(acts), acts.Next-now)
	}
	_, acts = turn(c, now+pushPause)
	if len(acts.Tasks) != 1 || !slices.Equal(acts.Tasks[0].Body, c.pushTo(nodeidtest.ID(7))) ||
		c.At() != 9 {
		t.Fatalf("told again: %q, as of configuration %d", addresses(acts), c.At())
	}
	c.Done(now, acts.Tasks[0], founding.Silent, nodeid.ID{}, nil)
	if _, acts = turn(c, now+time.Minute); len(acts.Tasks) > 0 {
		t.Error("it was tried more often than asked for")
	}
	c.spread.push(nodeidtest.ID(7), addrOf(7), 2)
	if err := c.Founding.Recover(now+time.Minute, testGroup); err != nil {
		t.Fatal(err)
	}
	events, acts := turn(c, now+time.Minute)
	if len(events) != 1 || events[0].Kind != founding.Restarted || len(acts.Tasks) > 0 || len(c.Voters()) > 0 {
		t.Errorf("a new life tells %q of the group of the one before; %+v", addresses(acts), events)
	}
}

// queried returns the task of the status query that a turn sends.
func queried(t *testing.T, acts Acts) Task {
	t.Helper()
	if len(acts.Tasks) != 1 || acts.Tasks[0].Query == nil {
		t.Fatalf("the turn asks %+v", acts.Tasks)
	}
	return acts.Tasks[0]
}

// TestAnInquiryFollowsAFew checks that an attempt follows a few redirects, but no redirect of an
// instance to itself. A new attempt begins after a pause. A leader asks no other instance.
func TestAnInquiryFollowsAFew(t *testing.T) {
	s := &sight{leader: nodeidtest.ID(2)}
	c, now := member(t, s)
	c.Inquire(&Inquiry{Raft: 3})
	_, acts := turn(c, now)
	e := queried(t, acts)
	if e.To != s.leader || *e.Query != (StatusQuery{Group: testGroup, Instance: nodeidtest.ID(1), Raft: 3, At: 1}) {
		t.Fatalf("it asks %+v", e)
	}
	for id := range uint64(queryHops) {
		c.StatusReplied(now, e, StatusReply{Leader: nodeidtest.ID(id + 3), Addr: addrOf(1)}, true)
		_, acts = turn(c, now)
		e = queried(t, acts)
	}
	for i, a := range []StatusReply{{Leader: nodeidtest.ID(9), Addr: addrOf(1)}, {Addr: addrOf(1)}, {}} {
		if i == 1 {
			a.Leader = e.To
		}
		c.StatusReplied(now, e, a, true)
		if _, acts = turn(c, now); len(acts.Tasks) > 0 || acts.Next > now+2*queryEvery {
			t.Errorf("after %+v it asks %+v at once, and again after %v", a, acts.Tasks, acts.Next-now)
		}
		now += 2 * queryEvery
		_, acts = turn(c, now)
		e = queried(t, acts)
	}
	c.StatusReplied(now, e, StatusReply{}, false)
	s.term, now = 5, now+2*queryEvery
	_, acts = turn(c, now)
	if len(acts.Told) != 1 || acts.Told[0].VoterStatus.Leader != nodeidtest.ID(1) || len(acts.Tasks) > 0 {
		t.Errorf("as the leader it is told %+v, and asks %+v", acts.Told, acts.Tasks)
	}
	if _, acts = turn(c, now+time.Second); len(acts.Told) > 0 {
		t.Error("it is told again")
	}
}

// TestARemovedReplicaGoesOnUntilTheLeaderSaysThatItMayStop checks rule 13 of package voters.
func TestARemovedReplicaGoesOnUntilTheLeaderSaysThatItMayStop(t *testing.T) {
	for _, ends := range []bool{false, true} {
		c, now := member(t, &sight{leader: nodeidtest.ID(2)})
		c.Configured(now, testGroup, 9, replicas(3)[1:])
		events, acts := turn(c, now)
		if !slices.ContainsFunc(events, func(e founding.Event) bool {
			return e.Kind == founding.Removed &&
				e.Raft == 1
		}) {
			t.Fatalf("it is not removed: %+v", events)
		}
		for range 3 {
			e := queried(t, acts)
			if e.Query.Raft != 1 || acts.Dismissed != 0 {
				t.Fatalf("it asks about %x; dismissed: %x", e.Query.Raft, acts.Dismissed)
			}
			c.StatusReplied(now, e, StatusReply{VoterStatus: &VoterStatus{}}, true)
			now += 2 * queryEvery
			_, acts = turn(c, now)
		}
		if e := queried(t, acts); ends {
			c.Retired(now, 1)
			c.StatusReplied(now, e, StatusReply{VoterStatus: &VoterStatus{MayStop: true}}, true)
		} else {
			c.StatusReplied(now, e, StatusReply{VoterStatus: &VoterStatus{MayStop: true}}, true)
		}
		if _, acts = turn(c, now); (acts.Dismissed == 1) == ends {
			t.Errorf("ended: %v, dismissed: %x", ends, acts.Dismissed)
		}
		if _, acts = turn(c, now+time.Minute); len(acts.Tasks) > 0 {
			t.Errorf("it goes on asking: %+v", acts.Tasks)
		}
	}
}

// leaver returns a voter that leaves while others are connected. The function change, if any,
// modifies the result.
func leaver(change func(*Leaver)) Leaver {
	l := Leaver{Member: true, Raft: 1, Votes: true, OthersConnected: true}
	if change != nil {
		change(&l)
	}
	return l
}

// TestWhatADepartureComesTo checks that an instance leaves without an error only if the leader
// permits it, if all leave, or if no other instance could need its vote.
func TestWhatADepartureComesTo(t *testing.T) {
	over := leaver(func(l *Leaver) { l.TimeOver = true })
	plain := leaver(func(l *Leaver) { l.Votes = false })
	waits := &VoterStatus{Report: voters.Report{Next: voters.Step{Why: "the heir catches up"}},
		Remarks: []string{"settings differ"}}
	words := "the heir catches up; settings differ"
	for _, c := range []struct {
		name   string
		leaver Leaver
		asks   bool         // whether Ask is the step before Heard
		said   *VoterStatus // answer of the leader; nil means that none has answered
		want   Step
		alone  bool
		lost   string
	}{
		{"it belongs to no group", Leaver{Raft: 1}, false, nil, Part, true, ""},
		{"it has no replica", Leaver{Member: true}, false, nil, Part, false, ""},
		{"its time is over", over, false, nil, Part, false, words},
		{"its time is over, and it does not vote", leaver(func(l *Leaver) { l.TimeOver, l.Votes = true, false }),
			false, nil, Part, false, ""},
		{"it is needed", leaver(nil), true, waits, Pause, false, ""},
		{"it may stop", leaver(nil), true, &VoterStatus{MayStop: true}, Part, false, ""},
		{"all leave", leaver(nil), true, &VoterStatus{AllLeaving: true, MayStop: true}, Part, true, ""},
		{"all leave that it leads", leaver(func(l *Leaver) { l.Leads = true }), true, &VoterStatus{AllLeaving: true},
			Pause, true, ""},
		{"no leader answers", leaver(nil), true, nil, Part, true, "no leader has answered"},
		{"no leader answers, and no other is here", leaver(func(l *Leaver) { l.OthersConnected = false }), true, nil, Part,
			true, ""},
		{"no leader answers, and it does not vote", plain, true, nil, Part, true, ""},
	} {
		d := Departure{words: words}
		if step := d.Next(0, c.leaver); step != Release {
			t.Fatalf("%s: it begins with step %d", c.name, step)
		}
		step := d.Next(0, c.leaver)
		if (step == Ask) != c.asks {
			t.Errorf("%s: step %d comes first", c.name, step)
		}
		if c.asks {
			d.Heard(0, c.leaver, c.said)
			step = d.Next(0, c.leaver)
		}
		if step != c.want || d.Alone != c.alone || d.Lost != c.lost {
			t.Errorf("%s: step %d, alone %v, lost %q; want %d, %v, %q", c.name, step, d.Alone, d.Lost, c.want,
				c.alone, c.lost)
		}
	}
}

// TestTheOrderOfADeparture checks that an instance first waits for its locks, and then asks the
// leader for permission, with pauses. If all instances leave, the leader stops last, after waiting
// at most FinalWait.
func TestTheOrderOfADeparture(t *testing.T) {
	var d Departure
	holds, stays := leaver(func(l *Leaver) { l.Held = true }), leaver(func(l *Leaver) { l.Leads = true })
	waits := &VoterStatus{Report: voters.Report{Next: voters.Step{Why: "the heir catches up"}}}
	takes := func(when string, now time.Duration, l Leaver, want ...Step) {
		t.Helper()
		for _, step := range want {
			if got := d.Next(now, l); got != step {
				t.Errorf("%s: step %d, want %d", when, got, step)
			}
		}
	}
	takes("it holds a lock", 0, holds, Release, Release)
	takes("it holds none", 0, stays, Ask)
	d.Heard(0, stays, waits)
	takes("it is needed", 0, stays, Pause, Ask)
	d.Heard(0, leaver(func(l *Leaver) { l.TimeOver = true }), nil)
	takes("no leader has answered in its time", 0, stays, Ask)
	d.Heard(0, stays, &VoterStatus{AllLeaving: true})
	takes("all leave it", FinalWait-1, stays, Pause, Pause)
	takes("all have left", FinalWait-1, leaver(nil), Part)
	takes("its last words are over", FinalWait, stays, Part)
	if d.Lost != "" || !d.Alone {
		t.Errorf("it has lost %q, and is alone: %v", d.Lost, d.Alone)
	}
	d = Departure{stage: asks, words: "the heir catches up"}
	over := leaver(func(l *Leaver) { l.TimeOver, l.Held = true, true })
	takes("its time is over", 0, over, Part)
	if d.Lost != "the heir catches up" {
		t.Errorf("it has lost %q", d.Lost)
	}
	if d = (Departure{stage: releases}); d.Next(0, over) != Part {
		t.Error("it waits for its locks when its time is over")
	}
}
