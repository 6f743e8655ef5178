package console

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
)

// scened returns the scene of an instance in a healthy group of three, with these keys.
func scened(keys ...mortise.KeyInfo) *scene {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	return &scene{
		now: now, long: 30 * time.Second,
		status: mortise.Status{Member: mortise.Member{Name: "s1"}, Group: "g", Leader: "s1", Attached: true,
			Lease: mortise.LeaseSafe},
		all: &answer{seen: now, keys: keys, health: &mortise.Health{Advice: "any one instance may be stopped"},
			sessions: []mortise.SessionInfo{
				{Member: mortise.Member{Session: "1", Name: "s1", Instance: "i1"}, Left: 9 * time.Second},
				{Member: mortise.Member{Session: "2", Name: "s2", Instance: "i2"}, Left: 9 * time.Second},
			}},
	}
}

// contended returns a key that s2 has held for a minute in the given session, and that s1 waits
// for.
func contended(name, session string, labels map[string]string) mortise.KeyInfo {
	since := time.Date(2026, 11, 23, 11, 59, 0, 0, time.UTC)
	return mortise.KeyInfo{Key: name, Held: 1, Waiting: 1, Queue: []mortise.Standing{
		{Hold: mortise.Hold{Holder: "s2", Session: session, Token: 7, Labels: labels, Since: since}, Left: 4 * time.Second},
		{Hold: mortise.Hold{Holder: "s1", Session: "1"}},
	}}
}

func (s *scene) first() finding { return s.view().Findings[0] }

func TestWhatStandsFirst(t *testing.T) {
	for what, c := range map[string]struct {
		scene     *scene
		id        string
		level     level
		want, not string // a text that the finding must contain, and one that it must not contain
	}{
		"all is well":  {scened(), "fine", fine, "Any one instance may be stopped", "force"},
		"a stuck lock": {scened(contended("orders/1", "2", nil)), "held-long", watch, "end the hold by force", ""},
		"an election": {scened(contended("leader", "2", shown.Purpose(shown.Election))), "fine", fine, "All is well",
			"force"},
		"a long job": {scened(contended("job", "2", map[string]string{"mortise.purpose": "job"})), "fine", fine,
			"All is well", "force"},
		"package tick": {scened(contended("report/run/X", "2", shown.Purpose(shown.Tick))), "fine", fine,
			"All is well", "force"},
		"a restarted holder": {func() *scene {
			s := scened(contended("orders/1", "2", nil))
			s.all.sessions = append(s.all.sessions,
				mortise.SessionInfo{Member: mortise.Member{Session: "10", Name: "s2", Instance: "i3"}})
			return s
		}(), "held-earlier", watch, "is held by session 2 of s2, which has the newer session 10: it is free in 4.0 s",
			"force"},
		"a session that the user opened": {func() *scene { // a newer session does not prove a later incarnation
			s := scened(contended("orders/1", "2", nil))
			s.all.sessions = append(s.all.sessions,
				mortise.SessionInfo{Member: mortise.Member{Session: "10", Name: "s2"}})
			return s
		}(), "held-long", watch, "force", ""},
		"no leader": {func() *scene {
			s := scened(contended("orders/1", "2", nil))
			s.status.Leader, s.status.Attached, s.status.Waiting = "", false, "group g has no leader"
			return s
		}(), "no-leader", broken, "no lock is granted", "force"},
		"no leader, and gossip is late": {func() *scene {
			s := scened()
			s.status.Leader, s.status.Attached = "", false
			s.status.Waiting = `group g has no leader; of its voters, "s2" (s2:1), "s3" (s3:1) cannot be reached: ` +
				`bring them back, with their directories`
			s.status.Voters = []mortise.Member{{Name: "s2", Address: "s2:1", Votes: true, Seen: true},
				{Name: "s3", Address: "s3:1", Votes: true}}
			return s
		}(), "no-leader", broken, "Bring back a majority of the voters: those that cannot be reached are named above.",
			"Not seen from here"},
		"another secret": {func() *scene {
			s := scened()
			s.status.Group, s.status.Leader, s.status.Attached = "", "", false
			s.status.Waiting = "founding waits: s2:1 cannot be asked: the other side has no secret"
			return s
		}(), "other-secret", broken, "its secret, certificate or Cluster differs from that of the others. Founding waits: " +
			"s2:1 cannot be asked: the other side has no secret. " +
			"Follow the sentence above", "still starting"},
		"no session": {func() *scene {
			s := scened(contended("orders/1", "2", nil))
			s.status.Attached = false
			return s
		}(), "no-session", broken, "no session with the leader", "force"},
		"two groups": {func() *scene {
			s := scened()
			s.status.Waiting = "two groups of this cluster have leaders and grant the same locks: stop the instances of one " +
				"of them"
			return s
		}(), "two-groups", broken, "It does not end by itself", "it ends by itself"},
		"two groups, seen by one of neither": {func() *scene {
			s := scened()
			s.status.Group, s.status.Leader, s.status.Attached = "", "", false
			s.status.Waiting = "two groups with leaders can be reached, 1 and 2: stop one of them, they never merge"
			return s
		}(), "two-groups", broken, "It does not end by itself", "if the others are still starting"},
		"the grace": {func() *scene {
			s := scened()
			s.status.Waiting = "the group is in its grace for about 8s more: nothing is granted while"
			s.status.GraceFor = 8 * time.Second
			return s
		}(), "grace", watch, "Wait: it ends by itself", ""},
		"another wait": {func() *scene { s := scened(); s.status.Waiting = "do this"; return s }(), "waits", watch,
			"Follow the sentence above", "ends by itself"},
		"fewer than Replicas": {func() *scene {
			s := scened()
			s.status.Promised = 3
			s.all.members = []mortise.Member{{Instance: "a", Tier: mortise.TierRoot},
				{Instance: "b", Tier: mortise.TierRoot}, {Instance: "b", Tier: mortise.TierRoot},
				{Name: "cron", Tier: mortise.TierGuest}}
			return s
		}(), "instances-missing", watch, "Replicas says that 3 instances run, and 2 are members. Start the instances",
			""},
		"more than Replicas": {func() *scene {
			s := scened()
			s.all.health.Surplus, s.all.health.Differs = 3, []string{"Surplus: 5 instances run (s1, s2 and 3 more), but " +
				"Replicas says 2: in a cut of the network a second group can be founded, and both groups grant the same " +
				"locks; set Replicas to 5 on all instances and roll that out, or scale back to 2"}
			return s
		}(), "surplus", broken, "5 instances run (s1, s2 and 3 more), but Replicas says 2: in a cut of the network a " +
			"second group can be founded, and both groups grant the same locks. Set Replicas to 5 on all instances and " +
			"roll that out, or scale back to 2.", ""},
		"two of one name": {func() *scene {
			s := scened()
			s.status.Namesake = `"s1" is the name of another instance too`
			return s
		}(), "namesake", watch, "start it again under a Name of its own", ""},
		"two of one name, and no report on the voters": {func() *scene {
			s := scened()
			s.all.health, s.status.Namesake = nil, `"s1" is the name of another instance too`
			return s
		}(), "namesake", watch, "Stop one of the two", ""},
	} {
		f := c.scene.first()
		text := strings.Join(strings.Fields(f.What+" "+f.Why+" "+f.Next), " ")
		for _, a := range f.About {
			text += " " + a.Key + " " + a.Text
		}
		if f.ID != c.id || f.Level != c.level || !strings.Contains(text, c.want) ||
			c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%s: %s, %v: %s", what, f.ID, f.Level, text)
		}
		for _, f := range c.scene.view().Findings {
			if c.not == "force" && strings.Contains(f.Next, "force") {
				t.Errorf("%s: %s", what, f.Next)
			}
		}
	}
}

func TestTheWorstFindingIsFirst(t *testing.T) {
	s := scened()
	s.status.Namesake, s.status.Leader, s.status.Attached = "a second one", "", false
	if v := s.view(); v.Findings[0].ID != "no-leader" || len(v.Findings) != 2 {
		t.Errorf("%+v", v.Findings)
	}
}

// Without a leader the page does not show the remaining time of sessions, marks no lock as held for
// long, and does not offer to end a hold by force.
func TestStaleFiguresAreMarked(t *testing.T) {
	s := scened(contended("orders/1", "2", nil))
	s.status.Leader, s.status.Attached, s.status.Lease = "", false, mortise.LeaseLost
	s.one, s.all.err = s.all, errBusy
	s.now = s.now.Add(time.Minute)
	v := s.view()
	if len(v.Leases) == 0 {
		t.Error("the sessions are not shown any more")
	}
	if !v.Stale || v.Key.Long || v.Key.Queue[0].Left != 0 || v.Key.For != 60 || v.Group.Advice != "" {
		t.Errorf("%+v", v.Key)
	}
	for _, l := range v.Leases {
		if l.Left != 0 {
			t.Errorf("%+v", l)
		}
	}
	f := &fakeNode{keys: s.all.keys}
	h := New(keyed{f}, Options{MayForce: func(*http.Request) bool { return true }})
	if page := mustPage(t, h, "/?key=orders/1"); !strings.Contains(page, "End this hold") {
		t.Error("a hold cannot be ended while all is well")
	}
	f.silent.Store(true)
	h.(*handler).answers.forget()
	page := mustPage(t, h, "/?key=orders/1")
	wantText(t, page, "No hold can be ended before a leader answers")
	if strings.Contains(page, "End this hold") {
		t.Error("the page offers to end a hold that it cannot see")
	}
}

func TestAKeyThatIsNotSeenIsNotFree(t *testing.T) {
	f := &fakeNode{}
	h := New(f, Options{})
	wantText(t, mustPage(t, h, "/?key=k"), "It is not held, and no request waits for it.")
	f.silent.Store(true)
	h.(*handler).answers.forget()
	if page := mustPage(t, h, "/?key=k"); strings.Contains(page, "It is not held, and no request waits for it.") {
		t.Error("a key that was not seen is said to be free")
	}
}

type keyed struct{ *fakeNode }

func (k keyed) Peek(context.Context, string) (mortise.KeyInfo, error) { return k.keys[0], nil }

func TestKeysOfTickDoNotFillThePage(t *testing.T) {
	s := scened(contended("report/run/X", "2", shown.Purpose(shown.Tick)),
		contended("leader", "2", shown.Purpose(shown.Election)), contended("orders/1", "2", nil))
	s.found, s.filter = s.all, filter{prefix: "report"}
	v := s.view()
	if len(v.Locks.Keys) != 2 || v.Locks.Ticks != 1 || v.Locks.Keys[0].Purpose != "election" ||
		len(v.Search.Keys) != 3 {
		t.Errorf("%+v", v.Locks)
	}
	if len(v.Longest) != 1 || v.Longest[0].Name != "orders/1" || len(v.Waited) != 1 {
		t.Errorf("longest held: %+v; most waited for: %+v", v.Longest, v.Waited)
	}
}
