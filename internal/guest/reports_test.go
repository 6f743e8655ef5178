package guest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

func member(i uint64, addr string) mortise.Member {
	return mortise.Member{Instance: nodeidtest.ID(i).String(), Address: addr}
}

// says returns the answer of an instance of a group with these voters.
func says(group, leader string, voters ...mortise.Member) Report {
	return Report{Status: &mortise.Status{Joined: true, Group: group, Leader: leader, Voters: voters},
		Answer: &query.HereAnswer{}, Outcome: Answered}
}

func targets(all ...uint64) (list []nodeid.Endpoint) {
	for _, i := range all {
		list = append(list, nodeid.Endpoint{ID: nodeidtest.ID(i), Addr: fmt.Sprintf("h%d:1", i)})
	}
	slices.SortFunc(list, func(a, b nodeid.Endpoint) int { return nodeid.Compare(a.ID, b.ID) })
	return list
}

// A session goes by all answers. It stays in its group as long as an instance of that group
// answers, and otherwise prefers a group that has a leader.
func TestASessionGoesByAllAnswers(t *testing.T) {
	a, b, c := member(1, "h1:1"), member(2, "h2:1"), member(3, "h3:1")
	alone := says("8", "", c)
	alone.Status.Joined = false
	failed := says("8", "lead", c)
	failed.Answer.Failed = "it ends"
	for _, test := range []struct {
		what    string
		has     uint64
		reports []Report
		group   uint64
		voters  []nodeid.Endpoint // nil means those that it had
	}{
		{"no answer", 7, []Report{{Outcome: Silent}}, 7, nil},
		{"each answer adds its voters", 7, []Report{says("7", "", b, a), says("7", "", c, a)}, 7, targets(1, 2, 3)},
		{"a voter has left", 7, []Report{says("7", "", a)}, 7, targets(1)},
		{"its own group comes before one with a leader", 7, []Report{says("8", "lead", c), says("7", "", b)}, 7, targets(2)},
		{"its group does not answer", 7, []Report{says("8", "lead", c)}, 8, targets(3)},
		{"its group does not answer, and no group has a leader", 7, []Report{says("8", "", c)}, 7, nil},
		{"an instance is in no group yet", 7, []Report{alone}, 7, nil},
		{"an instance has failed", 7, []Report{failed}, 7, nil},
		{"the first group", 0, []Report{says("8", "", c)}, 8, targets(3)},
		{"the group with a leader is the first", 0, []Report{says("8", "", c), says("9", "lead", b)}, 9, targets(2)},
		{"the first of two leaders", 0, []Report{says("8", "lead", c), says("9", "other", b)}, 8, targets(3)},
	} {
		g, err := Open(mortise.Config{Join: []string{"127.0.0.1:1"}})
		if err != nil {
			t.Fatal(err)
		}
		s := &Session{guest: g, group: test.has}
		s.client = client.New(client.Config{Clock: clock.Monotonic(), TTL: time.Second, Random: random,
			Send: func(nodeid.Endpoint, []byte, []byte) error { return nil }})
		if test.has != 0 {
			s.voters = targets(1, 2)
		}
		if test.voters == nil {
			test.voters = s.voters
		}
		s.learn(test.reports)
		slices.SortFunc(s.voters, func(a, b nodeid.Endpoint) int { return nodeid.Compare(a.ID, b.ID) })
		if s.group != test.group || !slices.Equal(s.voters, test.voters) {
			t.Errorf("%s: group %d, voters %v, want %d, %v", test.what, s.group, s.voters, test.group, test.voters)
		}
		s.client.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyWholeVotersAreAsked(t *testing.T) {
	whole, none := member(1, "h1:1"), mortise.Member{Instance: nodeid.ID{}.String(), Address: "h2:1"}
	got := targetsOf([]mortise.Member{none, {Instance: "?", Address: "h3:1"}, member(4, ""), whole})
	if !slices.Equal(got, targets(1)) {
		t.Errorf("%v", got)
	}
	for text, want := range map[string]uint64{"ff": 255, "": 0, "x": 0} {
		if got := groupOf(says(text, "")); got != want {
			t.Errorf("group %q: %d", text, got)
		}
	}
}

// A survey asks each address once, and says who has named it.
func TestASurveyAsksAnAddressOnce(t *testing.T) {
	s := survey{known: map[string]bool{"h1:1": true}}
	first := says("7", "lead", member(1, "h1:1"), member(2, "h2:1"), member(3, ""))
	second := says("7", "lead", member(2, "h2:1"))
	first.Status.Name, second.Status.Name = "first", "second"
	s.name([]Report{{Outcome: Silent}, first, second})
	s.add("the leader", []mortise.Member{member(2, "h2:1"), member(4, "h4:1")})
	want := []Report{{Addr: "h2:1", From: "first"}, {Addr: "h4:1", From: "the leader"}}
	if !reflect.DeepEqual(s.todo, want) {
		t.Errorf("%+v", s.todo)
	}
	silent := Report{Err: errors.New("silent")}
	if text := found([]Report{silent}, []error{errors.New("unresolved")}); text != "unresolved\nsilent" {
		t.Errorf("%q", text)
	}
	waits := Report{Addr: "h1:1", Status: &mortise.Status{Member: mortise.Member{Name: "n"}, Waiting: "peers"}}
	if text := found([]Report{silent, waits}, nil); text != "n at h1:1 is no member of a group yet: peers" {
		t.Errorf("%q", text)
	}
}

func TestWhatAnAnswerMeans(t *testing.T) {
	failure := func(kind query.Failure_Kind) error {
		return fmt.Errorf("%w", &queries.Failed{Kind: kind})
	}
	for _, c := range []struct {
		err     error
		outcome Outcome
		settled bool
		refusal error // what Refusal returns; nil means the error itself
	}{
		{nil, Answered, true, nil},
		{transport.ErrRefused, Refused, false, nil},
		{transport.ErrVersion, OtherVersion, false, nil},
		{transport.ErrForeign, Foreign, false, nil},
		{context.DeadlineExceeded, Silent, false, nil},
		{mortise.ErrNotAllowed, Silent, true, nil},
		{failure(query.Failure_NOT_READY), Silent, false, nil},
		{failure(query.Failure_WRONG), Silent, true, mortise.ErrBadRequest},
		{failure(query.Failure_CONFLICT), Silent, true, mortise.ErrConflict},
	} {
		if got := outcome(c.err); got != c.outcome {
			t.Errorf("%v: %s, want %s", c.err, got, c.outcome)
		}
		if got := settled(c.err); got != c.settled {
			t.Errorf("%v: settled %v", c.err, got)
		}
		if got := Refusal(c.err); c.refusal == nil && got != c.err || !errors.Is(got, c.refusal) && c.refusal != nil {
			t.Errorf("%v: %v, want %v", c.err, got, c.refusal)
		}
	}
	if Denied(&query.HereAnswer{}) != nil {
		t.Error("a whole answer is denied")
	}
	var denied *mortise.NotAllowedError
	short := &query.HereAnswer{Denied: &query.Denied{Verb: "read", Key: []byte("k\n"), For: "who\n"}}
	lacks := mortise.NotAllowedError{Verb: "read", Key: `k\u{a}`, For: `who\u{a}`}
	if !errors.As(Denied(short), &denied) || *denied != lacks {
		t.Errorf("%+v", denied)
	}
}

func TestWhatKeepsAGuestFromALock(t *testing.T) {
	s := &Session{client: client.New(client.Config{Clock: clock.Monotonic(), TTL: time.Second, Random: random,
		Send: func(nodeid.Endpoint, []byte, []byte) error { return nil }})}
	defer s.client.Close()
	held := &client.HeldError{Key: "k", Session: 4, Record: []byte(`{"name":"who"}`), Token: 3, SinceUnixMS: 5000,
		Waiters: 7, Value: shown.Encode("value", map[string]string{"l": "x"}, nil), Kept: true}
	for _, c := range []struct {
		err  error
		is   error
		says string
	}{
		{client.ErrBadKey, mortise.ErrBadKey, `"key"`},
		{&session.NotAllowedError{Verb: "lock", Key: "k"}, mortise.ErrNotAllowed, "lock"},
		{held, mortise.ErrHeld, "who"},
		{client.ErrInGrace, ErrNotReady, `"key"`},
		{client.ErrNoLeader, ErrNotReady, `"key"`},
		{client.ErrKept, ErrNotReady, `"key"`},
		{&client.WaitError{Err: context.Canceled, Behind: held}, context.Canceled, "no leader answers"},
		{client.ErrClosed, client.ErrClosed, ""},
	} {
		if got := s.explain("key", c.err); !errors.Is(got, c.is) || !strings.Contains(got.Error(), c.says) {
			t.Errorf("%v: %v", c.err, got)
		}
	}
	want := &mortise.HeldError{Key: "k", Waiters: 7, Hold: mortise.Hold{Holder: "who", Token: 3, Session: "4",
		Since: time.UnixMilli(5000), Kept: true, Value: "value", Labels: map[string]string{"l": "x"}}}
	if got := heldError(held); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, record := range []string{"", "{}"} {
		if got := heldError(&client.HeldError{Session: 4, Record: []byte(record)}); got.Holder != "session 4" {
			t.Errorf("record %q: %q", record, got.Holder)
		}
	}
}

// A guest says which side lacks the secret, and does not guess if both have one.
func TestWhyAnInstanceRejectsAGuest(t *testing.T) {
	const secret = "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c"
	ended := errors.New("unexpected EOF")
	for _, c := range []struct {
		secret   string
		insecure bool
		err      error
		want     string // "" means the error itself
	}{
		{"", false, transport.ErrSecured, needsSecret}, {secret, false, transport.ErrPlain, needsNoSecret},
		{"", false, ended, hungUp}, {"", true, ended, ""}, {secret, false, ended, ""},
		{"", false, errors.Join(errOpen, ended), ""}, {"", false, errors.New("silent"), ""},
		{"", true, transport.ErrForeign, ""}, {secret, false, errors.New("silent"), ""},
	} {
		g, err := Open(mortise.Config{Join: []string{"127.0.0.1:1"}, Secret: c.secret, Insecure: c.insecure})
		if err != nil {
			t.Fatal(err)
		}
		got, says := g.explain("a:1", c.err), c.want != ""
		if !says && got != c.err || says && (got.Error() != "a:1: "+c.want || !errors.Is(got, transport.ErrForeign)) {
			t.Errorf("with secret %v, insecure %v, %v: %v", c.secret != "", c.insecure, c.err, got)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestLimitsOfWhatAGuestAsksFor(t *testing.T) {
	s := &Session{client: client.New(client.Config{Clock: clock.Monotonic(), TTL: time.Second, Random: random,
		Send: func(nodeid.Endpoint, []byte, []byte) error { return nil }})}
	defer s.client.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		what string
		r    mortise.Request
		bad  bool
	}{
		{"the longest value", mortise.Request{Value: strings.Repeat("x", lockfsm.MaxValueBytes)}, false},
		{"a longer value", mortise.Request{Value: strings.Repeat("x", lockfsm.MaxValueBytes+1)}, true},
		{"the longest delay", mortise.Request{LockDelay: lockfsm.MaxDelay}, false},
		{"a longer delay", mortise.Request{LockDelay: lockfsm.MaxDelay + 1}, true},
		{"a negative delay", mortise.Request{LockDelay: -1}, true},
		{"the longest grace", mortise.Request{JeopardyGrace: lockfsm.MaxDelay}, false},
		{"a longer grace", mortise.Request{JeopardyGrace: lockfsm.MaxDelay + 1}, true},
		{"a negative grace", mortise.Request{JeopardyGrace: -1}, true},
		{"a negative MaxHold", mortise.Request{MaxHold: -1}, true},
		{"a negative MaxIdle", mortise.Request{MaxIdle: -1}, true},
		{"a short MaxIdle", mortise.Request{MaxIdle: client.MinIdle - 1}, true},
		{"the shortest MaxIdle", mortise.Request{MaxIdle: client.MinIdle}, false},
		{"no MaxHold", mortise.Request{}, false},
	} {
		c.r.Key = "k"
		if _, err := s.Acquire(ended, c.r); errors.Is(err, mortise.ErrBadRequest) != c.bad || err == nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
