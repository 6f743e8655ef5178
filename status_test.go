package mortise

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/stay"
)

func TestHowManyVotersAreWanted(t *testing.T) {
	for _, c := range []struct {
		voters, replicas int
		founders         []string
		want             int
	}{
		{5, 0, nil, 1}, {5, 1, nil, 1}, {5, 2, nil, 1}, {5, 3, nil, 3}, {5, 4, nil, 3}, {5, 9, nil, 5}, {4, 9, nil, 3},
		{5, 0, []string{"a", "b", "c"}, 3}, {5, 0, []string{"a", "b", "a"}, 1}, {3, 0, []string{"a", "b", "c", "d", "e"}, 3},
	} {
		if got := (&Config{Voters: c.voters, Replicas: c.replicas, Founders: c.founders}).votersWanted(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// A status adds up all sessions of the instance, and its lease is the shortest of theirs.
func TestAStatusHasAllSessions(t *testing.T) {
	first := client.Status{Phase: client.Attached, Lease: client.Jeopardy, Session: 5, Deadline: 900, GraceUntil: 700,
		Held: 1, Waiting: 2, Kept: 3, Stays: stay.Totals{Passes: 4, Recalls: 5, RecallTime: 6, InUse: 7}}
	second := client.Status{Phase: client.Attached, Session: 6, Deadline: 800, Held: 10, Waiting: 20, Kept: 30,
		Stays: stay.Totals{Passes: 40, Recalls: 50, RecallTime: 60, InUse: 70}}
	want := Status{Attached: true, Lease: LeaseJeopardy, LeaseFor: 200, GraceFor: 100, Held: 11, Waiters: 22,
		Sticky:   StickyStatus{Kept: 33, Grants: 4, Recalls: 5, RecallTime: 6, InUse: 7},
		Sessions: []string{"5", "6"}}
	want.Session = "5"
	var got Status
	got.fillSessions(&instance.Picture{Now: 600, Sessions: []client.Status{first, second}})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	for _, c := range []struct {
		what         string
		change       func(first, second *client.Status)
		lease, grace time.Duration
		sessions     int
	}{
		{"the own lease is the shortest", func(first, _ *client.Status) { first.Deadline = 650 }, 50, 100, 2},
		{"a lease has ended", func(_, second *client.Status) { second.Deadline = 500 }, 0, 100, 2},
		{"the grace may have ended", func(first, _ *client.Status) { first.GraceUntil = 500 }, 200, 1, 2},
		{"no grace", func(first, _ *client.Status) { first.GraceUntil = 0 }, 200, 0, 2},
		{"not attached", func(first, _ *client.Status) { first.Phase = client.Attaching }, 200, 0, 2},
		{"without a session", func(_, second *client.Status) { second.Session = 0 }, 200, 100, 1},
	} {
		one, two, got := first, second, Status{}
		c.change(&one, &two)
		got.fillSessions(&instance.Picture{Now: 600, Sessions: []client.Status{one, two}})
		if got.LeaseFor != c.lease || got.GraceFor != c.grace || len(got.Sessions) != c.sessions ||
			got.Attached != (one.Phase == client.Attached) {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}

func TestAStatusHasTheVoters(t *testing.T) {
	one, two, three := nodeidtest.ID(1), nodeidtest.ID(2), nodeidtest.ID(3)
	c := cluster.Status{Phase: founding.Member, Waiting: "waiting", Namesake: "namesake", Unresolved: "unresolved",
		Group: 7, Voters: []cluster.Voter{{Instance: one, Addr: "a:1"}, {Instance: two, Addr: "b:1", Learner: true},
			{Instance: three, Addr: "c:1"}},
		Members: []cluster.Member{{Instance: one, Name: "one", Zone: "z"}}}
	want := Status{Joined: true, Waiting: "waiting", Namesake: "namesake", Unresolved: "unresolved", Group: nodeid.Hex(7),
		Leader: "one", Voters: []Member{
			{Name: "one", Zone: "z", Instance: one.String(), Address: "a:1", Votes: true, Seen: true},
			{Instance: two.String(), Address: "b:1", Seen: true}, {Instance: three.String(), Address: "c:1", Votes: true}}}
	var got, none Status
	got.fill(&c, one, instance.InstanceNames{Members: c.Members}, func(id nodeid.ID) bool { return id == two })
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if none.fill(&cluster.Status{}, nodeid.ID{}, instance.InstanceNames{}, nil); !reflect.DeepEqual(none, Status{}) {
		t.Errorf("before the group: %+v", none)
	}
}

// The reason for a wait is the one that the reader can end first: an instance that has failed waits
// for nothing.
func TestWhatAStatusWaitsFor(t *testing.T) {
	voters := []Member{{Name: "a", Address: "a:1", Votes: true, Seen: true}, {Address: "b:1", Votes: true},
		{Name: "c", Instance: "i3", Address: "c:1", Seen: true},
		{Name: "d", Instance: "i4", Address: "d:1", Votes: true, Seen: true}}
	const list = "a at a:1, b:1 (not seen), c at c:1 (a learner, without a vote), d at d:1"
	failed := DiskFault{Name: "d", Instance: "i4", State: DiskFailed}
	low := DiskFault{Name: "a", State: DiskLow}
	unread := errors.New("unread")
	for _, c := range []struct {
		what   string
		change func(s *Status, p *instance.Picture)
		want   string // in the reason; "" means that there is none
		not    string // not in the reason, unless ""
	}{
		{"nothing", func(s *Status, p *instance.Picture) { p.Sessions[0].Phase = client.Attached }, "", ""},
		{"no group", func(s *Status, _ *instance.Picture) { s.Voters = nil }, "no group is known yet", ""},
		{"no leader", func(*Status, *instance.Picture) {}, noLeader + list, ""},
		{"a session", func(s *Status, _ *instance.Picture) { s.Leader = "a" }, "seeking a session with the leader, a", ""},
		{"the grace", func(s *Status, p *instance.Picture) {
			s.GraceFor, p.Sessions[0].Phase = 1234*time.Millisecond, client.Attached
		}, "in its grace for about 1.2s more", ""},
		{"an error", func(s *Status, p *instance.Picture) {
			s.Err, p.Unread, s.GraceFor, p.Sessions[0].Outdated = unread, unread, 5, session.Outdated{Group: 3, Build: 2}
		}, "", ""},
		{"the cluster", func(s *Status, _ *instance.Picture) { s.Waiting = "peers" }, "peers", list},
		{"an outdated build", func(s *Status, p *instance.Picture) {
			s.Waiting, p.Sessions[0].Outdated = "peers", session.Outdated{Group: 3, Build: 2}
		}, "lock rules 3", "peers"},
		{"an outdated build that is attached", func(_ *Status, p *instance.Picture) {
			p.Sessions[0].Phase, p.Sessions[0].Outdated = client.Attached, session.Outdated{Group: 3, Build: 2}
		}, "", ""},
		{"one disk", func(s *Status, _ *instance.Picture) {
			s.FaultyDisks = []DiskFault{failed}
		}, "d: its disk has failed", "this instance"},
		{"one disk of three, and a leader", func(s *Status, _ *instance.Picture) {
			s.FaultyDisks, s.Leader = []DiskFault{failed}, "a"
		}, "seeking a session", "disk"},
		{"two disks, and a leader", func(s *Status, _ *instance.Picture) {
			s.FaultyDisks, s.Leader, s.Disk = []DiskFault{failed}, "a", &DiskFault{State: DiskHung}
		}, "this instance: its disk does not answer", ""},
		{"its own disk, reported twice", func(s *Status, _ *instance.Picture) {
			s.FaultyDisks, s.Leader, s.Disk, s.Instance = []DiskFault{failed}, "a", &failed, "i4"
		}, "seeking a session", "disk"},
		{"disks that are almost full", func(s *Status, _ *instance.Picture) {
			s.FaultyDisks, s.Disk = []DiskFault{low, low, low}, &low
		}, noLeader, "disk"},
		{"a log beside others", func(_ *Status, p *instance.Picture) { p.Unread = unread }, "unread; " + noLeader + list, ""},
		{"the only log", func(_ *Status, p *instance.Picture) { p.Unread, p.OnlyVoter = unread, true }, "founded anew", list},
		{"the only log, on a bad disk", func(_ *Status, p *instance.Picture) {
			p.Unread, p.OnlyVoter, p.BadDisk = unread, true, true
		}, "until the disk is repaired", "founded anew"},
	} {
		s, p := Status{Voters: voters}, &instance.Picture{Sessions: make([]client.Status, 1)}
		c.change(&s, p)
		got := new(Node).waiting(&s, p)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: %q", c.what, got)
		}
	}
}

// Each part of a status is a line of its text, and is left out if there is none.
func TestAStatusInLines(t *testing.T) {
	s := Status{Member: Member{Name: "n"}}
	const least = "n at no address: no member yet\nsession not attached, no lease, 0 held, 0 waiting"
	if got := s.String(); got != least {
		t.Errorf("%q", got)
	}
	s = Status{Member: Member{Name: "n", Address: "a:1"}, Joined: true, Group: "7", Leader: "lead", Attached: true,
		Voters: []Member{{Name: "a", Address: "a:1", Votes: true, Seen: true}}, Lease: LeaseSafe, LeaseFor: 1234567,
		Held: 3, Waiters: 4, Waiting: "wait", Disk: &DiskFault{State: DiskLow, Cause: "cause", Remedy: "remedy"},
		Namesake: "twin", Unresolved: "entry", Health: &Health{Leader: "lead", Advice: "advice"}, Err: errors.New("error")}
	want := []string{"n at a:1: member of group 7, leader lead, voters a at a:1",
		"session attached, lease safe for 1ms, 3 held, 4 waiting", "waiting: wait", "disk: " + s.Disk.String(),
		"warning: twin", "warning: entry"}
	want = append(append(want, strings.Split(s.Health.String(), "\n")...), "failed: error")
	if got := strings.Split(s.String(), "\n"); !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
