package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	neturl "net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// furtherScenes returns changes of fullScene, one for each finding and for each fact that decides
// which finding there is.
func furtherScenes() map[string]func(*scene) {
	state := func(change func(st *mortise.Status)) func(*scene) {
		return func(s *scene) {
			s.status.Waiting, s.all.health = "", &mortise.Health{Advice: "any one instance may be stopped", Eligible: 9}
			change(&s.status)
		}
	}
	health := func(change func(h *mortise.Health)) func(*scene) {
		return func(s *scene) {
			s.status.Waiting = ""
			h := &mortise.Health{Leader: "the leader", Advice: "any one instance may be stopped", Eligible: 9, Members: 2}
			change(h)
			s.all.health = h
		}
	}
	silent := func(name string, seen bool) mortise.MissingVoter {
		return mortise.MissingVoter{Silent: 7 * time.Second, Member: mortise.Member{Name: name, Instance: "instance" + name,
			Seen: seen}}
	}
	disk := func(name string, state mortise.DiskState) mortise.DiskFault {
		return mortise.DiskFault{Name: name, Instance: "instance" + name, State: state, Cause: "EIO", Remedy: "mend " + name}
	}
	return map[string]func(*scene){
		"state: well": state(func(*mortise.Status) {}),
		"state: two groups": state(func(st *mortise.Status) {
			st.Waiting = "two groups with leaders can be reached"
		}),
		"state: another secret": state(func(st *mortise.Status) {
			st.Group, st.Waiting = "", "s2 cannot be asked: the other side has no secret"
		}),
		"state: no group":  state(func(st *mortise.Status) { st.Group, st.Waiting = "", "founding waits" }),
		"state: a grace":   state(func(st *mortise.Status) { st.GraceFor, st.Waiting = time.Second, "in its grace" }),
		"state: waits":     state(func(st *mortise.Status) { st.Waiting = "waits" }),
		"state: in danger": state(func(st *mortise.Status) { st.Lease = mortise.LeaseJeopardy }),
		"state: locks with MaxIdle": state(func(st *mortise.Status) {
			st.Idle = []mortise.IdleHold{{Key: "e1", Token: 101, MaxIdle: 10 * time.Second, Idle: 6 * time.Second},
				{Key: "e2", Token: 102, MaxIdle: time.Minute, Idle: 30 * time.Second}}
		}),
		"state: many hang": state(func(st *mortise.Status) {
			for i := range 5 {
				st.Idle = append(st.Idle, mortise.IdleHold{Key: fmt.Sprint("e", i), Token: mortise.Token(100 + i),
					MaxIdle: time.Minute, Idle: 31 * time.Second})
			}
		}),
		"state: a follower":   state(func(st *mortise.Status) { st.Leading = false }),
		"state: a learner":    state(func(st *mortise.Status) { st.Leading, st.Votes = false, false }),
		"state: not joined":   state(func(st *mortise.Status) { st.Joined = false }),
		"state: two problems": state(func(st *mortise.Status) { st.Unresolved, st.Namesake = "dns:///x", "s1 is a name twice" }),
		"state: no session": state(func(st *mortise.Status) {
			st.Attached, st.Waiting = false, "waits for an answer"
		}),
		"state: no leader": state(func(st *mortise.Status) { st.Leader, st.Waiting = "", "no leader" }),
		"state: no leader, and no voter is seen": state(func(st *mortise.Status) {
			st.Leader, st.Voters = "", []mortise.Member{{Name: "n", Instance: "i", Address: "a:1", Zone: "z", Votes: true},
				{Instance: "j", Address: "b:1", Votes: true}, {Name: "m", Instance: "k", Address: "c:1"},
				{Name: "o", Instance: "l", Address: "d:1", Votes: true, Seen: true}}
		}),
		"state: voters without their directories": state(func(st *mortise.Status) {
			st.Leader, st.Waiting = "", "s2 runs without this group's log"
		}),
		"state: voters that cannot be reached": state(func(st *mortise.Status) {
			st.Leader, st.Waiting = "", "s2 cannot be reached: bring them back"
		}),
		"state: more instances are promised": state(func(st *mortise.Status) { st.Promised = 6 }),
		"state: as many as are promised":     state(func(st *mortise.Status) { st.Promised = 5 }),
		"no answer of a leader":              func(s *scene) { s.all.err, s.status.Waiting = errors.New("too late"), "" },
		"health: a change":                   health(func(h *mortise.Health) { h.Due, h.Change = true, "s4 gets a vote" }),
		"health: none can be lost":           health(func(h *mortise.Health) { h.CannotLose = []string{"s1", "s2"} }),
		"health: alone":                      health(func(h *mortise.Health) { h.CannotLose, h.Members = []string{"s1"}, 1 }),
		"health: voters wanted":              health(func(h *mortise.Health) { h.Target = 5 }),
		"health: disks": health(func(h *mortise.Health) {
			h.Disks = []mortise.DiskFault{disk("a", mortise.DiskLow), disk("b", mortise.DiskHung)}
			h.Missing = []mortise.MissingVoter{silent("a", true), silent("b", true), silent("c", false)}
		}),
		"health: settings": health(func(h *mortise.Health) {
			h.Surplus = 2
			h.Differs = []string{"Name: z is missing", "Build: s3 is old", "State: s3 differed", "Grace: 1s on s2",
				"Surplus: 5 instances run, but Replicas says 3; set Replicas to 5 on all instances and roll that out, or scale " +
					"back to 3"}
		}),
		"a few members": func(s *scene) { few(s, 3) },
		"four members":  func(s *scene) { few(s, 4) },
		"a few members, and a session of a program": func(s *scene) {
			few(s, 3)
			s.all.sessions[2].Instance = ""
		},
		"a few members, and an expired session": func(s *scene) { few(s, 3); s.all.sessions[2].Expired = true },
		"a few members, and one that leaves":    func(s *scene) { few(s, 3); s.all.sessions[2].Leaving = true },
		"a few members, and another session":    func(s *scene) { few(s, 3); s.all.sessions[2].Session = "77" },
		"a few members, and no report": func(s *scene) {
			few(s, 3)
			s.all.health = nil
		},
		"a few members, and two votes": func(s *scene) { few(s, 3); s.all.health.Target = 2 },
		"a few members behind a session": func(s *scene) {
			few(s, 3)
			s.after, s.others = "1", &answer{members: s.all.members[1:], total: 3}
		},
		"the leader is named by its ID": func(s *scene) { s.status.Leader = "instance2" },
		"voters that the page has too": func(s *scene) {
			s.all.members = slices.Clone(s.all.members)
			s.all.members[1].Zone, s.all.members[1].Name, s.all.members[1].Address = "elsewhere", "other", "o:1"
		},
	}
}

// decisive are the fields of the view in which the further scenes differ on purpose.
func decisive() []string {
	return []string{"level", "stale", "instance", "group", "zones", "members", "findings", "once"}
}

// few leaves n members, with their sessions.
func few(s *scene, n int) {
	s.all.members, s.all.sessions, s.status.Voters = s.all.members[:n], slices.Clone(s.all.sessions[:n]),
		s.status.Voters[:n]
	for i := range s.all.sessions {
		s.all.sessions[i].Expired, s.all.sessions[i].Leaving = false, false
	}
	h := *s.all.health
	h.Target = 0
	s.all.health, s.all.keys, s.all.more = &h, s.all.keys[:3], false
}

// endings returns the text of each kind of abnormal end.
func endings(t *testing.T) map[string]json.RawMessage {
	all, now := map[string]json.RawMessage{}, time.Unix(1_800_000_000, 0)
	for _, kind := range []mortise.EventKind{mortise.EventFreed, mortise.EventLeft, mortise.EventHeld} {
		for _, cause := range []mortise.Outcome{mortise.OutcomeForced, mortise.OutcomeExpired, mortise.OutcomeClosed} {
			for _, reason := range []string{"", "a reason"} {
				e := ending{now, 5, "a key", 7, "a holder", kind, cause, "by one", reason}
				all[fmt.Sprintf("%s %s %q", kind, cause, reason)] = encoded(t, e.Text()+e.Day(now.Add(-72*time.Hour)))
			}
		}
	}
	return all
}

// turning returns the figures of an hour whose last minute differs from the rest.
func turning(t *testing.T) map[string]json.RawMessage {
	began, all := time.Unix(1_800_000_000, 0), map[string]json.RawMessage{}
	for what, last := range map[string]time.Duration{"nothing": 0, "quick": time.Millisecond, "slow": time.Minute} {
		var h hour
		h.begin(began)
		for i := range 40 * 60 {
			took := time.Duration(1+i%7) * time.Second
			if at := began.Add(time.Duration(i) * time.Second); i < 38*60 || last > 0 {
				if i >= 38*60 {
					took = last
				}
				s := h.at(at)
				s.grants, s.waits, s.losses = s.grants+1, s.waits+uint32(i%3), s.losses+uint32(i%5)
				s.wait.add(took)
				s.hold.add(2 * took)
				if i%60 == 0 {
					h.leased(at, 50*time.Second)
				}
			}
		}
		p := pastOf(&h, began.Add(40*time.Minute))
		all[what] = encoded(t, string(encoded(t, map[string]any{"figures": p, "charts": p.Charts()})))
	}
	return all
}

// asking is a node that writes down who is asked what, and answers with err.
type asking struct {
	*fakeNode
	said  []string
	ended bool
	err   error
}

func (a *asking) ForceUnlock(ctx context.Context, key string, token mortise.Token, reason string) (bool, error) {
	until, limited := ctx.Deadline()
	a.said = append(a.said, fmt.Sprintf("ForceUnlock %q %d %q, limited %v", key, token, reason,
		limited && time.Until(until) <= forceWithin))
	return a.ended, a.err
}

// TestEachForm sends forms that are right and wrong, and compares what the node is asked and what
// the viewer is told.
func TestEachForm(t *testing.T) {
	form := func(key, token, reason string) neturl.Values {
		return neturl.Values{"key": {key}, "token": {token}, "reason": {reason}}
	}
	const asked = `ForceUnlock "a key" 7 "a reason", limited true`
	for _, c := range []struct {
		form  neturl.Values
		ended bool
		err   error
		code  int
		text  string
		said  string
	}{
		{form("a key", "7", " a reason "), true, nil, http.StatusOK, "The hold of a key with token 7 has ended.", asked},
		{form("a key", "7", "a reason"), false, nil, http.StatusOK,
			"Nothing was done: the hold of a key with token 7 had ended before.", asked},
		{form("a key", "7", "a reason"), false, errors.New("no leader"), http.StatusServiceUnavailable,
			"It is not known whether the hold of a key with token 7 has ended: no leader.", asked},
		{form("", "7", "a reason"), true, nil, http.StatusBadRequest, "the form names no key, or no token of a hold.", ""},
		{form("a key", "0", "a reason"), true, nil, http.StatusBadRequest, "the form names no key, or no token", ""},
		{form("a key", "x", "a reason"), true, nil, http.StatusBadRequest, "the form names no key, or no token", ""},
		{form("a key", "7", "  "), true, nil, http.StatusBadRequest, "Nothing was done: give a reason.", ""},
		{form("a key", "7", "a\x1b"), true, nil, http.StatusBadRequest, "Nothing was done: the reason ", ""},
		{form("a\x1b", "7", "a reason"), true, nil, http.StatusOK, "has ended",
			`ForceUnlock "a\x1b" 7 "a reason", limited true`},
	} {
		node := &asking{fakeNode: &fakeNode{}, ended: c.ended, err: c.err}
		h := New(node, Options{MayForce: func(*http.Request) bool { return true }}).(*handler)
		before := h.answerTo(t.Context(), question{})
		code, page := post(t, h, c.form)
		if code != c.code || !strings.Contains(page, c.text) || strings.Join(node.said, "; ") != c.said {
			t.Errorf("%v: %d, asked %q, want %d, %q in\n%s", c.form, code, node.said, c.code, c.text, page)
		}
		if after, _ := h.answers.at(question{}, time.Now()); (after.tried.After(before.tried)) != (c.said != "") {
			t.Errorf("%v: the page that follows has an answer of %v, and the one before of %v", c.form, after.tried,
				before.tried)
		}
	}
}

// TestAnswersThatAreKept fills the answers, and checks that the oldest one is left out, but never
// the one about all keys.
func TestAnswersThatAreKept(t *testing.T) {
	var l answers
	now := time.Unix(1_800_000_000, 0)
	l.keep(question{}, &answer{tried: now.Add(-time.Hour), seen: now})
	for i := range answersKept + 5 {
		l.keep(question{key: fmt.Sprint(i)}, &answer{tried: now.Add(time.Duration(-i) * time.Second), seen: now})
		if want := min(i+1, answersKept) + 1; len(l.all) != want {
			t.Fatalf("%d answers, want %d", len(l.all), want)
		}
	}
	for i := range answersKept + 5 {
		at, good := l.at(question{key: fmt.Sprint(i)}, now)
		// Each answer is older than those before it. So the one that was kept last is left out, until
		// the next comes.
		if has := i < answersKept; (at != nil) != has || good != (has && i == 0) {
			t.Errorf("%d: %+v, %v", i, at, good)
		}
	}
	if at, good := l.at(question{}, now.Add(-time.Hour+fresh-1)); at == nil || !good {
		t.Errorf("all keys: %+v, %v", at, good)
	}
	if at, good := l.at(question{}, now.Add(-time.Hour+fresh)); at == nil || good {
		t.Errorf("all keys, later: %+v, %v", at, good)
	}
	l.forget()
	if at, good := l.at(question{}, now.Add(-time.Hour)); at == nil || good || !at.seen.Equal(now) || !at.tried.IsZero() {
		t.Errorf("forgotten: %+v, %v", at, good)
	}
}

func TestWhatAProbeSays(t *testing.T) {
	failed, s := errors.New("the error"), mortise.Status{Waiting: "waits", Unresolved: "u", Namesake: "n"}
	for want, change := range map[string]func(*mortise.Status){
		"waits":      func(*mortise.Status) {},
		"the error":  func(s *mortise.Status) { s.Waiting = "" },
		"the error!": func(s *mortise.Status) { s.Err = failed },
	} {
		changed := s
		change(&changed)
		if got := waitsFor(changed, failed); got != strings.TrimSuffix(want, "!") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
