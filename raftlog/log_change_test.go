package raftlog

import (
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"testing/synctest"
	"time"
)

// The method have returns a text with all reported configurations, and the last configuration.
func (r *recorder) have() (list string, last Configuration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.configs {
		list += fmt.Sprint(c.Index, c.Voters, c.Outgoing, c.Learners, " ")
		last = c
	}
	return list, last
}

// inStep matches the accepted orders of batches and configurations. A batch and a change of one
// turn may be proposed in either order. The first configuration may be reported before the test
// begins.
var inStep = regexp.MustCompile(`^(<1>)?(a<2>|<2>a)(b<2>|<2>b)(c<2>|<2>c)$`)

func TestConfiguredIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 1, nil)
		l, app := p.logs[1], p.apps[1]
		app.view(func(r *recorder) {
			r.onConfigured = func(c Configuration) {
				if s := l.Survey(); s.Config.Index < c.Index {
					t.Errorf("told of configuration %d, the survey has %d", c.Index, s.Config.Index)
				}
				r.text += fmt.Sprintf("<%d>", len(c.Members))
			}
		})
		l.Campaign()
		synctest.Wait()
		if got, last := app.have(); got != "1 [1] [] [] " || !reflect.DeepEqual(last.Members, testMembers(1)) {
			t.Errorf("at the start: %s, %+v", got, last)
		}
		store := NewMemoryStore()
		if err := Join(store, testGroup, 2); err != nil {
			t.Fatal(err)
		}
		p.start(2, store, nil)
		if got, _ := p.apps[2].have(); got != "" {
			t.Errorf("a replica without members was given the configuration %s", got)
		}
		l.Propose(2, []byte("a"))
		if !l.Change(2, add(2)) {
			t.Error("the log has ended")
		}
		time.Sleep(time.Second)
		l.Propose(2, []byte("b"))
		l.Change(2, Change{Promote: []uint64{2}})
		time.Sleep(time.Second)
		l.Propose(2, []byte("c"))
		l.Change(2, Change{Demote: []uint64{2}})
		time.Sleep(time.Second)
		got, last := app.have()
		want := fmt.Sprintf("1 [1] [] [] %d [1] [] [2] %d [1 2] [] [] %d [1] [] [2] ", app.configs[1].Index,
			app.configs[2].Index, app.configs[3].Index)
		if got != want || !reflect.DeepEqual(last.Members, testMembers(1, 2)) {
			t.Errorf("told of %s, want %s; %+v", got, want, last)
		}
		if _, other := p.apps[2].have(); !reflect.DeepEqual(other, last) {
			t.Errorf("the other was told of %+v, want %+v", other, last)
		}
		if !inStep.MatchString(app.text) {
			t.Errorf("applied in the order %s", app.text)
		}
	})
}

func TestChangeIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, nil)
		l, app := p.lead()
		term := l.Status().Term
		for _, other := range p.logs {
			if other != l {
				other.Change(term, add(9))
			}
		}
		l.Change(term-1, add(9))
		time.Sleep(time.Second)
		if _, last := app.have(); last.Index != 1 {
			t.Errorf("told of %+v", last)
		}
		// One of these two changes is dropped: 8 if it still waits when 9 arrives, otherwise 9.
		l.Change(term, add(8))
		l.Change(term, add(9))
		synctest.Wait()
		l.Change(term, add(10)) // this change must not be dropped
		time.Sleep(time.Second)
		if _, last := app.have(); len(last.Learners) != 2 || last.Learners[0] > 9 || last.Learners[1] != 10 {
			t.Errorf("told of %+v", last)
		}
		l.Close()
		if l.Change(term, add(11)) || l.Survey().Term != 0 || l.Survey().Replicas != nil || l.Survey().Pending {
			t.Errorf("after Close: %+v", l.Survey())
		}
	})
}

func TestSurveyOfALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 3, nil)
		l, app := p.lead()
		term := l.Status().Term
		if s := l.Survey(); s.Term != term || s.Self != l.cfg.ID || len(s.Replicas) != 3 || s.Config.Index != 1 ||
			s.Pending {
			t.Errorf("the leader sees %+v", s)
		}
		for id, other := range p.logs {
			if s := other.Survey(); other != l && (s.Term != 0 || s.Replicas != nil || s.Self != id ||
				s.Config.Index != 1) {
				t.Errorf("a follower sees %+v", s)
			}
		}
		time.Sleep(200 * time.Millisecond)
		for _, r := range l.Survey().Replicas {
			if !r.Active || !r.CaughtUp || !r.Full || !r.Settled || r.SilentFor > 100*time.Millisecond {
				t.Errorf("without faults the leader sees %+v", r)
			}
		}
		gone := l.cfg.ID%3 + 1
		p.logs[gone].Close()
		time.Sleep(700 * time.Millisecond)
		for _, r := range l.Survey().Replicas {
			if long := r.SilentFor >= 600*time.Millisecond; long != (r.ID == gone) || r.Active == long {
				t.Errorf("when %d has been silent for 700 ms the leader sees %+v", gone, r)
			}
		}
		app.view(func(r *recorder) {
			r.onRole = func(role Role) {
				if s := l.Survey(); !role.Leading && s.Term != 0 {
					t.Errorf("told that the lead is lost, and the survey says %+v", s)
				}
			}
		})
		p.logs[l.cfg.ID%3+1].Close()
		p.logs[(l.cfg.ID+1)%3+1].Close()
		time.Sleep(2 * time.Second)
		if s := l.Survey(); s.Term != 0 || s.Replicas != nil {
			t.Errorf("when all others are gone: %+v", s)
		}
	})
}
