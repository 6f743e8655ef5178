package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// The answer to a task of an earlier incarnation changes nothing, whatever kind of task it is, and
// that to a task of this incarnation does.
func TestTasksOfAnEarlierLifeDoNotCount(t *testing.T) {
	q := &Inquiry{Raft: 1}
	kinds := map[string]struct {
		task    Task
		outcome founding.Outcome
	}{
		"attached": {Task{attached: true}, founding.Answered},
		"pushed":   {Task{pushed: &pushing{addr: addrOf(1), tries: 2}}, founding.Silent},
		"Prepare":  {Task{Prepare: &voters.Step{ID: 7}, term: 5}, founding.Refused},
		"probe":    {Task{probe: &voters.Probe{ID: 2}, term: 5}, founding.Refused},
		"Query":    {Task{Query: &StatusQuery{}, inquiry: q}, founding.Answered},
	}
	about := []string{"To", "Addr", "Body", "term", "life", "inquiry"}
	for i := range reflect.TypeFor[Task]().NumField() {
		name := reflect.TypeFor[Task]().Field(i).Name
		if _, ok := kinds[name]; !ok && !slices.Contains(about, name) {
			t.Errorf("no row has a task with %s", name)
		}
	}
	for name, kind := range kinds {
		for _, earlier := range []uint64{1, 0} {
			c, now := member(t, &sight{term: 5})
			c.forget()
			c.configure(now, testGroup, 1, replicas(3))
			c.Look()
			turn(c, now)
			*q = Inquiry{Raft: 1, asking: true}
			c.wanted, c.acts, c.inquiries = false, Acts{}, inquiries{list: []*Inquiry{q}}
			c.spread = spreading{telling: 1}
			state := func() string {
				return fmt.Sprint(c.wanted, c.spread.telling, len(c.spread.pushes), len(c.inquiries.list), q.asking,
					len(c.acts.Told))
			}
			before, e := state(), kind.task
			if e.life = c.life - earlier; e.Query != nil {
				c.StatusReplied(now, e, StatusReply{VoterStatus: &VoterStatus{MayStop: true}}, true)
			} else {
				c.Done(now, e, kind.outcome, nodeidtest.ID(2), nil)
			}
			if changed := state() != before; changed != (earlier == 0) {
				t.Errorf("%s, %d lives ago: %s, then %s", name, earlier, before, state())
			}
		}
	}
}

// Each task of a turn is one of the present incarnation.
func TestTasksAreOfTheirLife(t *testing.T) {
	c, now := member(t, &sight{leader: nodeidtest.ID(2)})
	for life := range uint64(3) {
		c.configure(now, testGroup, 1, replicas(3))
		c.spread.push(nodeidtest.ID(2), addrOf(1), 1)
		_, acts := turn(c, now)
		if len(acts.Tasks) == 0 || acts.Tasks[0].life != life {
			t.Errorf("life %d: the tasks %+v", life, acts.Tasks)
		}
		c.forget()
	}
}

// A question to an incarnation that ends before the turn of the owner has no answer.
func TestAQuestionToAnEarlierLifeIsNotAnswered(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := idleOwner(t, &scriptedNet{})
			out := c.own.core.Tick(c.now(), c.wall(), c.random())
			if len(out.Questions) == 0 {
				t.Fatal("the core asks nothing")
			}
			answer := make(chan []byte, 1)
			go func() { answer <- c.Answer(Asker{Instance: nodeidtest.ID(5), Addr: addrOf(5)}, out.Questions[0].Body) }()
			if synctest.Wait(); restarts {
				c.in.nextLife()
			}
			c.pass(2 * time.Second)
			if got := <-answer; (got == nil) != restarts {
				t.Errorf("restarted: %v, answered %q", restarts, got)
			}
		})
	}
}
