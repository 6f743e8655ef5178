package mortise

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/lockfsm"
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

// TestEachLineOfAStatusAlone sets each field of a status that is a line, or a part of one, alone.
// The field changes its own line, and no other.
func TestEachLineOfAStatusAlone(t *testing.T) {
	const first, second = "n at no address: no member yet", "session not attached, no lease, 0 held, 0 waiting"
	disk := DiskFault{State: DiskLow, Cause: "cause", Remedy: "remedy"}
	health := Health{Leader: "lead", Advice: "advice"}
	for what, c := range map[string]struct {
		set  func(s *Status)
		want []string
	}{
		"nothing":  {func(*Status) {}, []string{first, second}},
		"Address":  {func(s *Status) { s.Address = "a:1" }, []string{"n at a:1: no member yet", second}},
		"Joined":   {func(s *Status) { s.Joined = true }, []string{"n at no address: member", second}},
		"Group":    {func(s *Status) { s.Group = "7" }, []string{first + " of group 7, leader none, voters ", second}},
		"Leader":   {func(s *Status) { s.Leader = "lead" }, []string{first, second}},
		"Attached": {func(s *Status) { s.Attached = true }, []string{first, strings.Replace(second, "not ", "", 1)}},
		"Lease":    {func(s *Status) { s.Lease = LeaseSafe }, []string{first, second}},
		"LeaseFor": {func(s *Status) { s.Lease, s.LeaseFor = LeaseJeopardy, 1 }, []string{first,
			strings.Replace(second, "no lease", "lease jeopardy for 0s", 1)}},
		"Held": {func(s *Status) { s.Held = 3 }, []string{first, strings.Replace(second, "0 held", "3 held", 1)}},
		"Waiters": {func(s *Status) { s.Waiters = 3 }, []string{first,
			strings.Replace(second, "0 waiting", "3 waiting", 1)}},
		"Idle": {func(s *Status) {
			s.Idle = []IdleHold{{"k\x1b", 7, 10 * time.Second, 2345 * time.Millisecond}, {"l", 8, time.Minute, 0}}
		}, []string{first, second, `MaxIdle: k\u{1b} (token 7): no Beat for 2.3s of 10s`}},
		"Waiting":     {func(s *Status) { s.Waiting = "wait" }, []string{first, second, "waiting: wait"}},
		"Disk":        {func(s *Status) { s.Disk = &disk }, []string{first, second, "disk: " + disk.String()}},
		"Namesake":    {func(s *Status) { s.Namesake = "twin" }, []string{first, second, "warning: twin"}},
		"Unresolved":  {func(s *Status) { s.Unresolved = "entry" }, []string{first, second, "warning: entry"}},
		"Health":      {func(s *Status) { s.Health = &health }, []string{first, second, health.String()}},
		"Err":         {func(s *Status) { s.Err = errors.New("why") }, []string{first, second, "failed: why"}},
		"FaultyDisks": {func(s *Status) { s.FaultyDisks = []DiskFault{disk} }, []string{first, second}},
	} {
		s := Status{Member: Member{Name: "n"}}
		if c.set(&s); s.String() != strings.Join(c.want, "\n") {
			t.Errorf("%s: %q, want %q", what, s.String(), c.want)
		}
	}
}

// TestEachVoterInAText checks how a voter is listed for each combination of what is known about it.
func TestEachVoterInAText(t *testing.T) {
	for i, want := range []string{"a:1 (a learner, without a vote) (not seen)",
		"n at a:1 (a learner, without a vote) (not seen)", "a:1 (not seen)", "n at a:1 (not seen)",
		"a:1 (a learner, without a vote)", "n at a:1 (a learner, without a vote)", "a:1", "n at a:1"} {
		v := Member{Address: "a:1", Votes: i&2 != 0, Seen: i&4 != 0, Zone: "z", Instance: "i", Version: "v"}
		if i&1 != 0 {
			v.Name = "n"
		}
		s := Status{Voters: []Member{v, {Address: "b:1", Votes: true, Seen: true}}}
		if got := s.votersText(); got != want+", b:1" {
			t.Errorf("%+v: %q, want %q", v, got, want)
		}
	}
}

// TestEachLineOfAHealthAlone does the same with the health of a group.
func TestEachLineOfAHealthAlone(t *testing.T) {
	const first, last = "leader none, 0 voters wanted of 0 eligible instances", "next safe step: "
	disk := DiskFault{Name: "d", State: DiskHung, Since: time.Unix(0, 0), Cause: "cause", Remedy: "remedy"}
	const fault = "its disk does not answer, noticed 1970-01-01 00:00:00 UTC (cause): remedy"
	for what, c := range map[string]struct {
		h    Health
		want []string
	}{
		"nothing":  {Health{}, []string{first, last}},
		"Leader":   {Health{Leader: "lead"}, []string{strings.Replace(first, "none", "lead", 1), last}},
		"Target":   {Health{Target: 3}, []string{strings.Replace(first, "0 voters", "3 voters", 1), last}},
		"Eligible": {Health{Eligible: 3}, []string{strings.Replace(first, "of 0", "of 3", 1), last}},
		"Missing": {Health{Missing: []MissingVoter{{Member: Member{Name: "m", Seen: true}, Silent: 1234 * time.Millisecond},
			{Member: Member{Name: "o"}, Silent: time.Minute}}}, []string{first,
			"missing: m (silent for 1.2s), o (silent for at least 1m0s, as this leader has never heard from it)", last}},
		"CannotLose": {Health{CannotLose: []string{"a", "b"}}, []string{first,
			"this group cannot survive the loss of a, or of b", last}},
		"Change":  {Health{Change: "change"}, []string{first, "voters: change", last}},
		"Disks":   {Health{Disks: []DiskFault{disk}}, []string{first, "disk of d: " + fault, last}},
		"Differs": {Health{Differs: []string{"one", "two"}}, []string{first, "differs: one", "differs: two", last}},
		"Advice":  {Health{Advice: "advice"}, []string{first, last + "advice"}},
		"Members": {Health{Members: 3, Surplus: 4, Due: true}, []string{first, last}},
	} {
		if got := c.h.String(); got != strings.Join(c.want, "\n") {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	for after, want := range map[time.Duration]string{1234 * time.Millisecond: "1.2s", 9940 * time.Millisecond: "9.9s",
		9999 * time.Millisecond: "10s", 10*time.Second - 1: "10s", 10 * time.Second: "10s", 12600 * time.Millisecond: "13s"} {
		if got := (MissingVoter{Member: Member{Seen: true}, Silent: after}).Silence(); got != "silent for "+want {
			t.Errorf("%v: %q, want %q", after, got, want)
		}
	}
}

// TestEachAdvice has a row for each advice, in which nothing else is wrong that comes later, and
// checks that what comes earlier replaces it.
func TestEachAdvice(t *testing.T) {
	silent := []MissingVoter{{Member: Member{Name: "m", Instance: "i", Seen: true}, Silent: time.Second}}
	failed := DiskFault{Name: "m", Instance: "i", State: DiskFailed, Since: time.Unix(0, 0), Cause: "cause",
		Remedy: "remedy"}
	low := DiskFault{Name: "l", Instance: "i", State: DiskLow, Cause: "few bytes"}
	var all Health
	rows := []struct {
		set          func(h *Health)
		quorum, sole bool
		want         string
	}{
		{func(*Health) {}, true, false, "any one instance may be stopped; wait for Ready of its successor before the next"},
		{func(h *Health) { h.CannotLose = []string{"a", "b"} }, true, false,
			"stop only one instance at a time, with Leave, and do not stop a, b"},
		{func(h *Health) { h.Disks = []DiskFault{low} }, true, false,
			"make room before you stop any other instance: l: few bytes"},
		{func(h *Health) { h.Eligible = 2 }, true, false, "start a third instance: one of the two votes"},
		{func(h *Health) { h.Eligible = 1 }, true, false, "start a second and a third instance"},
		{func(h *Health) { h.Leader = "lead" }, true, true,
			"let three instances vote: start two more with Founders that name all three, then restart lead with"},
		{func(h *Health) { h.Eligible, h.Differs = 2, []string{"Voters: x", "Founders: y"} }, true, true,
			"restart every instance whose Founders or Replicas differ from the others'"},
		{func(h *Health) { h.Differs = []string{"Replicas: y"} }, true, true,
			"restart every instance whose Founders or Replicas differ from the others'"},
		{func(h *Health) { h.Eligible = 1 }, true, true, "restart every instance that still has the group's present " +
			"Founders or Replicas (differs shows them) with the new ones, one at a time and with Leave; restart lead, which"},
		{func(h *Health) { h.Differs = append(h.Differs, "State: s; do this; then that") }, true, true, "then that"},
		{func(h *Health) { h.Differs = append([]string{"Build: b; build"}, h.Differs...) }, true, true, "build"},
		{func(h *Health) { h.Differs = append([]string{"Name: n; name"}, h.Differs...) }, true, true, "name"},
		{func(h *Health) { h.Differs = append(h.Differs, "Surplus: s; fewer") }, true, true, "fewer"},
		{func(h *Health) { h.Due = true }, true, true, "stop no instance now; wait until the change is done"},
		{func(h *Health) { h.Missing = silent }, true, true,
			"stop no instance now: m (silent for 1s) is being replaced, or must come back"},
		{func(h *Health) { h.Disks = append(h.Disks, failed) }, true, true, "stop no other instance now: m answers and " +
			"takes locks; its disk has failed, noticed 1970-01-01 00:00:00 UTC (cause): remedy"},
		{func(*Health) {}, false, true, "bring back a majority of the voters: m (it answers and takes locks; its disk has " +
			"failed)"},
		{func(h *Health) { h.Disks = nil }, false, true, "bring back a majority of the voters: m (silent for 1s)"},
		{func(h *Health) { h.Missing = nil }, false, true, "stop no instance now; wait until the change is done"},
	}
	all.Eligible = 3
	for i, row := range rows {
		if row.set(&all); !strings.HasPrefix(all.advice(row.quorum, row.sole), row.want) {
			t.Errorf("row %d: %s\nwant %s", i, all.advice(row.quorum, row.sole), row.want)
		}
	}
}

// TestEachDifferenceHasItsStep checks the step for a difference of each setting.
func TestEachDifferenceHasItsStep(t *testing.T) {
	h := Health{Advice: "advice"}
	for _, setting := range []string{"Founders", "Replicas", "Name", "Build", "State", "Surplus", "Voters", "Grace"} {
		want := "advice"
		switch setting {
		case "Name", "Build", "State", "Surplus":
			want = "three"
		case "Voters", "Grace":
			want = "unless a roll-out of a new value is under way, set " + setting + " to one value on all instances, and " +
				"restart those that change, one at a time and with Leave"
		}
		if got := h.DifferStep(setting + ": one: x; two; three"); got != want {
			t.Errorf("%s: %q, want %q", setting, got, want)
		}
	}
}

// TestDisksAreToldWhole compares each fault with what an instance reports.
func TestDisksAreToldWhole(t *testing.T) {
	since := time.Unix(5, 0)
	got := diskFaults([]instance.FaultyDisk{{Name: "n", Instance: "i", DiskFault: instance.DiskFault{
		State: instance.DiskHung, Since: since, Cause: "cause", Remedy: "remedy"}}, {}})
	want := []DiskFault{{Name: "n", Instance: "i", State: DiskHung, Since: since, Cause: "cause", Remedy: "remedy"}, {}}
	if !slices.Equal(got, want) || diskFaults(nil) != nil {
		t.Errorf("%+v", got)
	}
	for state, words := range map[DiskState]instance.DiskState{DiskFailed: instance.DiskFailed,
		DiskHung: instance.DiskHung, DiskRemoved: instance.DiskRemoved,
		DiskLow:     instance.DiskLow,
		DiskNoFiles: instance.DiskNoFiles} {
		if text := (DiskFault{State: state}).String(); !strings.HasPrefix(text, instance.DiskWords(words)+", noticed") {
			t.Errorf("%s: %q", state, text)
		}
	}
}

// TestEachErrorOfALockNamesItsHolder compares the whole text of an error about a holder, with each
// of its fields.
func TestEachErrorOfALockNamesItsHolder(t *testing.T) {
	since := time.Unix(0, 0).UTC()
	full := HeldError{Key: "k", Waiters: 7, Hold: Hold{Holder: "n\x1b", Session: "4", Token: 3, Since: since, Value: "v",
		Kept: true}}
	for i, c := range []struct {
		change func(e *HeldError)
		want   string
	}{
		{func(*HeldError) {}, `lock "k" is kept by n\u{1b} since 1970-01-01T00:00:00Z (token 3, value "v"), 7 waiting`},
		{func(e *HeldError) { e.Kept = false },
			`lock "k" is held by n\u{1b} since 1970-01-01T00:00:00Z (token 3, value "v"), 7 waiting`},
		{func(e *HeldError) { e.Since = time.Time{} }, `lock "k" is kept by n\u{1b} (token 3, value "v"), 7 waiting`},
		{func(e *HeldError) { e.Value = "" },
			`lock "k" is kept by n\u{1b} since 1970-01-01T00:00:00Z (token 3), 7 waiting`},
		{func(e *HeldError) { e.namesake = true }, `lock "k" is kept by n\u{1b} in another incarnation (session 4 does ` +
			`not belong to this process; it ends by itself if that incarnation is over) since 1970-01-01T00:00:00Z (token 3, ` +
			`value "v"), 7 waiting`},
		{func(e *HeldError) { e.Token = 0 },
			`lock "k" is not held, but n\u{1b} waits for it together with other locks, value "v", 7 waiting`},
	} {
		e := full
		c.change(&e)
		if e.Error() != "mortise: "+c.want || errors.Is(&e, ErrHeld) != (e.Token != 0) {
			t.Errorf("row %d: %q, %v\nwant %q", i, e.Error(), errors.Is(&e, ErrHeld), c.want)
		}
	}
	circle := []DeadlockLink{{Holder: "a\x1b", Key: "k"}, {Holder: "b", Key: "l"}}
	const waits = `mortise: deadlock: a\u{1b} waits for "k", b waits for "l"`
	for want, e := range map[string]DeadlockError{
		"": {}, ", under a shared lock of the same key: a shared lock cannot be upgraded; unlock it first, or take the " +
			"exclusive lock from the beginning": {upgrade: true},
		", under an upgradable lock of the same key: call Lock.Upgrade":                      {upgradable: true},
		", under permits of the same key: unlock them first, or ask for all permits at once": {permits: true},
	} {
		if e.Circle = circle; e.Error() != waits+want || errors.Is(&e, ErrHeld) {
			t.Errorf("%q, want %q", e.Error(), waits+want)
		}
	}
	for want, e := range map[string]ForcedError{
		`the lock was ended by force on by\u{1b}: why\u{1b}`: {By: "by\x1b", Reason: "why\x1b"},
		`the lock was resumed by its token on by\u{1b}`:      {By: "by\x1b", Reason: "why\x1b", Resumed: true},
	} {
		if e.Error() != "mortise: "+want || !errors.Is(&e, ErrLost) || errors.Is(&e, ErrHeld) {
			t.Errorf("%q, want %q", e.Error(), want)
		}
	}
	entered := EnteredError{Field: "Value", key: "k"}
	if want := fmt.Sprint(ErrBadRequest, `: Request.Value: lock "k" is entered again under its own context, and `,
		"its first request asked for another Value: set it there, or leave it out here"); entered.Error() != want ||
		!errors.Is(&entered, ErrBadRequest) || errors.Is(&entered, ErrHeld) {
		t.Errorf("%q\nwant %q", entered.Error(), want)
	}
	denied := NotAllowedError{Verb: "read", Key: "k", For: "f"}
	if !errors.Is(&denied, ErrNotAllowed) || errors.Is(&denied, ErrHeld) || !strings.Contains(denied.Error(), "read") {
		t.Error(&denied)
	}
	if err := ownError(failed(&denied)); !reflect.DeepEqual(err, &denied) || failed(ErrLost) != ErrLost ||
		ownError(ErrLost) != ErrLost {
		t.Errorf("%v", err)
	}
}

// TestEachErrorIsExplained compares the whole text of each error of package client, about a lock
// that this instance holds, another one, or an earlier incarnation of this one.
func TestEachErrorIsExplained(t *testing.T) {
	n := alone(t, Config{Name: "n"})
	if err := n.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	own := n.client.Status().Session
	since := time.Unix(0, 0)
	behind := func(name string, id lockfsm.SessionID, waiters int, kept bool) *client.HeldError {
		return &client.HeldError{Key: "k", Session: id, Record: replica.Record{Name: name}.Encode(), Token: 3,
			SinceUnixMS: 5000, Waiters: waiters, Kept: kept}
	}
	at := since.Add(5 * time.Second).Format(time.RFC3339)
	queued := func(holder, is, others, advice string) string {
		return "mortise: do it: context deadline exceeded (when this request was queued, " + holder + " " + is +
			" it, since " + at + ", token 3, and " + others + advice + ")"
	}
	wait := func(behind *client.HeldError) error {
		return &client.WaitError{Err: context.DeadlineExceeded, Behind: behind}
	}
	denied := &session.NotAllowedError{Verb: "read", Key: "k"}
	for i, c := range []struct {
		err   error
		is    error
		want  string
		known bool // the holder is known
	}{
		{denied, ErrNotAllowed, denied.Error(), false},
		{behind("x", 9, 1, false), ErrHeld, heldError(behind("x", 9, 1, false)).Error(), false},
		{behind("n", own, 1, false), ErrHeld, heldError(behind("n", own, 1, false)).Error(), false},
		{&client.DeadlockError{Circle: []lockfsm.Link{{Session: 7, Key: "k"}}}, locker.ErrDeadlock,
			`mortise: deadlock: session 7 waits for "k"`, false},
		{client.ErrInGrace, ErrNotReady, fmt.Sprint(ErrNotReady, ": do it: ", client.ErrInGrace), false},
		{client.ErrNoLeader, ErrNotReady, fmt.Sprint(ErrNotReady, ": do it: ", client.ErrNoLeader), false},
		{client.ErrKept, ErrNotReady, fmt.Sprint(ErrNotReady, ": do it: ", client.ErrKept), false},
		{wait(nil), context.DeadlineExceeded, "mortise: do it: context deadline exceeded", false},
		{wait(behind("x", 9, 1, false)), context.DeadlineExceeded, queued("x", "held", "no other request was waiting", ""),
			true},
		{wait(behind("x", 9, 2, true)), context.DeadlineExceeded, queued("x", "kept", "1 other request was waiting", ""),
			true},
		{wait(behind("x", 9, 3, false)), context.DeadlineExceeded, queued("x", "held", "2 other requests were waiting", ""),
			true},
		{wait(behind("n", own, 1, false)), context.DeadlineExceeded, queued("this instance itself", "held",
			"no other request was waiting", "; another call held it, or it was never unlocked; to enter a lock again, pass "+
				"lock.Context(ctx)"), true},
		{wait(behind("n", 9, 1, false)), context.DeadlineExceeded, queued("another incarnation of n", "held",
			"no other request was waiting", "; the lock is free when that incarnation's session ends"), true},
		{context.Canceled, context.Canceled, "mortise: do it: context canceled", false},
		{context.DeadlineExceeded, context.DeadlineExceeded, "mortise: do it: context deadline exceeded", false},
		{ErrQueueFull, ErrQueueFull, ErrQueueFull.Error() + " (do it)", false},
	} {
		got := n.explain("do it", c.err)
		held, waits := errors.AsType[*waitError](got)
		if !errors.Is(got, c.is) || got.Error() != c.want || waits && held.HolderKnown() != c.known {
			t.Errorf("row %d: %q, want %q", i, got, c.want)
		}
	}
	for name, want := range map[string]bool{"n": true, "x": false} {
		if n.met(behind(name, 9, 1, false)).namesake != want || n.met(behind(name, own, 1, false)).namesake {
			t.Errorf("a holder called %q counts as an earlier incarnation: %v", name, !want)
		}
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.explain("do it", ErrQueueFull); err != ErrClosed {
		t.Errorf("after Close: %v", err)
	}
}
