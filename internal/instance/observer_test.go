package instance

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session/client"
)

// hears compares all that the hooks were told since its last call.
func (r *rig) hears(t *testing.T, when string, want ...NodeEvent) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, e := range want {
		lines = append(lines, fmt.Sprintf("hook: %+v", e))
	}
	if !slices.Equal(r.told, lines) {
		t.Errorf("%s: told\n%q\nwant\n%q", when, r.told, lines)
	}
	r.told = nil
}

// TestEachChangeOfASessionIsTold goes through the life of a session of the node and of one of the
// user's own. Only the first one makes the node available.
func TestEachChangeOfASessionIsTold(t *testing.T) {
	for _, own := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			now := clock.Time(time.Hour)
			r.n.grantable.begin(now)
			w, at := &observer{node: r.n, own: own}, client.Status{}
			step := func(when string, after time.Duration, change func(s *client.Status), news client.News,
				available *NodeEvent, want ...NodeEvent) {
				t.Helper()
				now = now.Add(after)
				r.n.env.clock = still(now)
				news.Before, news.After = at, at
				change(&news.After)
				at = news.After
				w.news(&news)
				if available != nil && !own {
					want = append([]NodeEvent{*available}, want...)
				}
				r.hears(t, fmt.Sprintf("own %v, %s", own, when), want...)
			}
			phase := func(p client.Phase) func(*client.Status) { return func(s *client.Status) { s.Phase = p } }
			lease := func(l client.LeaseState, left time.Duration) func(*client.Status) {
				return func(s *client.Status) { s.Lease, s.Deadline = l, now.Add(left) }
			}
			is := func(state string, took time.Duration) *NodeEvent { return &NodeEvent{State: state, Took: took} }
			step("nothing", 0, func(*client.Status) {}, client.News{}, nil)
			step("it opens", time.Second, func(s *client.Status) { s.Session, s.Phase = 5, client.Attaching }, client.News{},
				nil, NodeEvent{State: stateOpened, Session: "5"})
			step("it has a lease", time.Second, lease(client.Safe, 9*time.Second), client.News{}, nil,
				NodeEvent{State: client.Safe.String(), Session: "5", Left: 9 * time.Second})
			step("it is attached, in the grace", time.Second, func(s *client.Status) {
				s.Phase, s.GraceUntil = client.Attached, now.Add(time.Second)
			}, client.News{}, nil)
			step("the grace is over", time.Second, func(s *client.Status) { s.GraceUntil = 0 }, client.News{},
				is(stateAvailable, 4*time.Second))
			step("answers", time.Second, func(*client.Status) {}, client.News{Renewed: []time.Duration{3, 4}, Unanswered: 2},
				nil, NodeEvent{State: stateAcknowledged, Session: "5", Took: 3},
				NodeEvent{State: stateAcknowledged, Session: "5", Took: 4}, NodeEvent{State: stateUnanswered, Session: "5"},
				NodeEvent{State: stateUnanswered, Session: "5"})
			step("in jeopardy", time.Second, lease(client.Jeopardy, 2*time.Second), client.News{}, nil,
				NodeEvent{State: client.Jeopardy.String(), Session: "5", Left: 2 * time.Second})
			step("no lease", time.Second, lease(client.Lost, -time.Second), client.News{}, is(stateUnavailable, 3*time.Second),
				NodeEvent{State: client.Lost.String(), Session: "5"})
			step("a lease again", time.Second, lease(client.Safe, time.Second), client.News{},
				is(stateAvailable, time.Second), NodeEvent{State: client.Safe.String(), Session: "5", Left: time.Second})
			step("it seeks", 2*time.Second, phase(client.Seeking), client.News{}, is(stateUnavailable, 2*time.Second))
			step("another session, attached", 5*time.Second, func(s *client.Status) {
				s.Session, s.Phase, s.Ended = 6, client.Attached, client.SessionExpired
			}, client.News{}, is(stateAvailable, 5*time.Second), NodeEvent{State: client.SessionExpired.String(), Session: "5"},
				NodeEvent{State: stateOpened, Session: "6"})
			step("its end, without a lease", time.Second, func(s *client.Status) {
				s.Session, s.Lease, s.Deadline, s.Ended = 0, client.Lost, 0, client.SessionClosed
			}, client.News{}, is(stateUnavailable, time.Second), NodeEvent{State: client.SessionClosed.String(), Session: "6"},
				NodeEvent{State: client.Lost.String()})
			age, granted := r.n.grantable.share(now.Add(time.Second))
			if want := 5 * time.Second; age != now.Sub(clock.Time(time.Hour))+time.Second || !own && granted != want+want/5 ||
				own && granted != 0 {
				t.Errorf("own %v: available for %v of %v", own, granted, age)
			}
		})
	}
}

// TestTheTimeOfGrants checks the sum of the times in which locks could be granted, also while they
// can be granted.
func TestTheTimeOfGrants(t *testing.T) {
	var g grantable
	g.begin(100)
	for i, c := range []struct {
		at      clock.Time
		can     bool
		lasted  time.Duration
		changed bool
		granted time.Duration // one nanosecond later
	}{
		{105, false, 0, false, 0}, {110, true, 10, true, 1}, {115, true, 0, false, 6}, {130, false, 20, true, 20},
		{140, false, 0, false, 20}, {150, true, 20, true, 21},
	} {
		lasted, changed := g.set(c.at, c.can)
		age, granted := g.share(c.at + 1)
		if lasted != c.lasted || changed != c.changed || granted != c.granted || age != time.Duration(c.at-99) {
			t.Errorf("step %d: %v, %v, then %v of %v", i, lasted, changed, granted, age)
		}
	}
}

// TestEachLeaderIsToldOnce goes through all changes of the leader that a replica knows, and of its
// term. An instance without hooks notes none.
func TestEachLeaderIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		r.replicaOf(raftlog.Role{})
		r.status.Members = nil
		r.n.known.learn(places()[1].Instance, InstanceName{Name: "second"})
		r.hears(t, "no leader yet")
		third := places()[2].Instance.String()
		for _, c := range []struct {
			when         string
			term, leader uint64
			want         []NodeEvent
		}{
			{"a leader", 5, 2, []NodeEvent{{State: stateNew, Leader: "second", Term: 5}}},
			{"the same", 5, 2, nil},
			{"none", 6, 0, []NodeEvent{{State: stateNone}}},
			{"none in a later term", 7, 0, nil},
			{"the same in a later term", 7, 2, []NodeEvent{{State: stateNew, Leader: "second", Term: 7}}},
			{"none again", 7, 0, []NodeEvent{{State: stateNone}}},
			{"the same in the same term", 7, 2, []NodeEvent{{State: stateAgain, Leader: "second", Term: 7}}},
			{"another, without a name", 8, 3, []NodeEvent{{State: stateNew, Leader: third, Term: 8}}},
			{"its term is unknown", 0, 3, nil},
			{"its term is known", 9, 3, nil},
			{"itself", 10, 1, []NodeEvent{{State: stateNew, Leader: places()[0].Instance.String(), Term: 10}}},
		} {
			r.voted().core.Role(raftlog.Role{Term: c.term, Leader: c.leader, Leading: c.leader == 1})
			r.hears(t, c.when, c.want...)
		}
		r.voted().stop()
		r.n.replica.Store(nil)
		r.n.leaderMoved()
		r.hears(t, "no replica", NodeEvent{State: stateNone})
		r.n.config.Hooks = nil
		r.withReplica()
		r.hears(t, "no hooks")
		if r.n.leading.now != (lead{}) {
			t.Errorf("without hooks %+v is noted", r.n.leading.now)
		}
	})
}
