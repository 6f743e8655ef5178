package voters

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

var durableThree = Settings{Voters: 3, Durable: true}

// emptied replaces the instance of replica id by another process with its name and address, which
// has the number as its ID. The old process is silent for a second.
func (l *lead) emptied(id nodeid.ReplicaID, number uint64) (heir nodeid.ID) {
	heir = nodeidtest.ID(number)
	r := &l.f.Replicas[id-1]
	r.Linked, r.Active, r.SilentFor = false, false, time.Second
	for i := range l.f.Registered {
		if old := &l.f.Registered[i]; old.Instance == r.Instance {
			old.Reachable = false // its session has not expired
			fresh := *old
			fresh.Instance, fresh.Addr, fresh.Order, fresh.Reachable = heir, r.Addr, number, true
			l.f.Registered = append(l.f.Registered, fresh)
			break
		}
	}
	return heir
}

func (l *lead) probed(id nodeid.ReplicaID, over bool, by nodeid.ID) {
	l.look(0)
	for _, p := range l.Probes(l.now) {
		if p.ID == id {
			l.Probed(l.now, id, over, by)
		}
	}
}

// TestALostDirectoryIsReplacedAtOnce checks the whole replacement: until it is over, no Ready ends.
func TestALostDirectoryIsReplacedAtOnce(t *testing.T) {
	l := newLead(t, "a* b c | |", durableThree)
	l.look(0)
	heir := l.emptied(3, 904)
	l.want(0, None, 0, "that the address is the other's is not known yet")
	l.probed(3, true, heir)
	step := l.look(0)
	renewing := func(want bool) {
		t.Helper()
		if r := l.Report(); !r.Due && want || r.Renewing != want {
			t.Fatalf("due %v, renewing %v (%s), want %v", r.Due, r.Renewing, r.Next.Why, want)
		}
	}
	if step.Kind != Prepare || step.Instance != heir {
		t.Fatalf("the heir is not asked: %+v", step)
	}
	renewing(true)
	l.Answered(l.now, step.ID, Running)
	l.want(0, AddLearner, step.ID, "it runs")
	l.f.Config.Learners = []nodeid.ReplicaID{step.ID}
	l.f.Replicas = append(l.f.Replicas, Replica{ID: step.ID, Instance: heir, Addr: "host3", Linked: true, Active: true})
	l.want(0, None, 0, "it has not caught up, and three votes do not become one")
	renewing(true)
	last := &l.f.Replicas[3]
	last.CaughtUp, last.Full, last.Settled = true, true, true
	change := l.look(0)
	if change.Kind != Change || !slices.Equal(change.Remove, []nodeid.ReplicaID{3}) ||
		!slices.Equal(change.Promote, []nodeid.ReplicaID{step.ID}) {
		t.Fatalf("one change replaces the voter: %+v", change)
	}
	want := `"c" is removed (another instance uses its name and its address, without its directory)`
	if !strings.Contains(change.Why, want) {
		t.Errorf("the reason is %q", change.Why)
	}
	l.f.Config = Config{Voters: []nodeid.ReplicaID{1, 2, step.ID}}
	l.f.Replicas = slices.Delete(l.f.Replicas, 2, 3)
	l.want(0, None, 0, "it is replaced")
	renewing(false)
}

// TestADirectoryIsNotTakenForLost lists what does not show that a directory is lost. In each case
// the voter keeps its vote for a minute.
func TestADirectoryIsNotTakenForLost(t *testing.T) {
	c := func(l *lead) *Replica { return &l.f.Replicas[2] }
	last := func(l *lead) *Registered { return &l.f.Registered[len(l.f.Registered)-1] }
	for name, alter := range map[string]func(l *lead, heir nodeid.ID){
		"nothing answered there": func(l *lead, _ nodeid.ID) { l.probed(3, false, nodeid.ID{}) },
		"the address refuses":    func(l *lead, _ nodeid.ID) { l.probed(3, true, nodeid.ID{}) },
		"another one answered":   func(l *lead, _ nodeid.ID) { l.probed(3, true, nodeidtest.ID(905)) },
		"it has another address": func(l *lead, h nodeid.ID) { last(l).Addr = "host9"; l.probed(3, true, h) },
		"it has another name":    func(l *lead, h nodeid.ID) { last(l).Name = "x"; l.probed(3, true, h) },
		"its session has ended":  func(l *lead, h nodeid.ID) { last(l).Session = false; l.probed(3, true, h) },
		"it is out of contact":   func(l *lead, h nodeid.ID) { last(l).Reachable = false; l.probed(3, true, h) },
		"it leaves":              func(l *lead, h nodeid.ID) { last(l).Leaving = true; l.probed(3, true, h) },
		"the voter runs":         func(l *lead, h nodeid.ID) { c(l).Linked = true; l.probed(3, true, h) },
		"the voter came back after it": func(l *lead, h nodeid.ID) {
			l.probed(3, true, h)
			c(l).Linked = true
			l.look(0)
			c(l).Linked = false
		},
		"only a majority with it could do it": func(l *lead, h nodeid.ID) {
			l.probed(3, true, h)
			l.f.Replicas[1].Active = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLead(t, "a* b c | |", durableThree)
			l.look(0)
			alter(l, l.emptied(3, 904))
			for range 50 {
				if s := l.look(time.Second); s.Kind != None || !l.Report().Due {
					t.Fatalf("%+v, due %v", s, l.Report().Due)
				}
			}
		})
	}
	l := newLead(t, "a* b c | |", three) // in memory the name is enough, and Renewed has no effect
	l.look(0)
	l.emptied(3, 904)
	l.look(0)
	if l.view.Replicas[2].Renewed || l.Report().Renewing {
		t.Error("without directories none is lost")
	}
}

// TestLostDirectoriesAreReplacedOneByOne empties two of five directories.
func TestLostDirectoriesAreReplacedOneByOne(t *testing.T) {
	l := newLead(t, "a* b c d e | |", Settings{Voters: 5, Durable: true})
	l.look(0)
	for id, by := range map[nodeid.ReplicaID]uint64{4: 904, 5: 905} {
		l.emptied(id, by)
	}
	l.look(0)
	for _, p := range l.Probes(l.now) {
		l.Probed(l.now, p.ID, true, nodeidtest.ID(900+p.ID))
	}
	s := l.look(0)
	if s.Kind != Prepare || s.Instance != nodeidtest.ID(904) {
		t.Fatalf("not the first one: %+v", s)
	}
	l.want(0, None, 0, "one after the other")
	if l.view.Replicas[3].Renewed == l.view.Replicas[4].Renewed {
		t.Error("two voters are replaced together")
	}
	l.Answered(l.now, s.ID, Refused)
	if next := l.look(0); next.Kind != Prepare || next.Instance != nodeidtest.ID(905) {
		t.Errorf("the other is not replaced while the first heir refuses: %+v", next)
	}
	if !l.Report().Renewing {
		t.Error("Ready may end while a heir refuses")
	}
}

// TestARefusalCostsNoVote lets the heir refuse for long. The group keeps its three votes until the
// silence has lasted a minute, since with one vote the next loss would end it.
func TestARefusalCostsNoVote(t *testing.T) {
	l := newLead(t, "a* b c | |", durableThree)
	l.look(0)
	heir := l.emptied(3, 904)
	l.probed(3, true, heir)
	for range 58 {
		s := l.look(time.Second)
		switch {
		case s.Kind == Prepare:
			l.Answered(l.now, s.ID, Refused)
		case s.Kind != None:
			t.Fatalf("%+v", s)
		case !l.Report().Renewing || !l.Report().Due:
			t.Fatalf("Ready may end: %+v", l.Report())
		}
	}
}

// TestASlowDiskCostsNoVote asks an instance whose answer takes longer than a question waits. Its
// replica replaces a dead voter, and meanwhile three votes do not become one.
func TestASlowDiskCostsNoVote(t *testing.T) {
	for _, settings := range []Settings{three, durableThree} {
		l := newLead(t, "a* b c/minute | | d", settings)
		id := l.look(0).ID
		for waited := time.Duration(0); waited < preparing-time.Second; waited += 100 * time.Millisecond {
			if s := l.look(100 * time.Millisecond); s.Kind != None && (s.Kind != Prepare || s.ID != id) {
				t.Fatalf("after %v: %+v", waited, s)
			}
		}
		l.Answered(l.now, id, Running)
		l.want(0, AddLearner, id, "the late answer counts")
	}
}
