package voters

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// lead is a Reconciler with its leader's facts. The facts come from a line in the format of scene.
// A name's position in the line is the instance's Order.
type lead struct {
	Reconciler
	t     *testing.T
	now   time.Duration
	f     Facts
	fresh nodeid.ReplicaID
}

func newLead(t *testing.T, line string, settings Settings) *lead {
	l := &lead{t: t, now: time.Hour, fresh: 200}
	l.see(line, settings)
	return l
}

func (l *lead) see(line string, settings Settings) {
	v := scene(l.t, line, settings)
	l.f = Facts{Self: v.Self, Settings: settings, Config: v.Config, Replicas: v.Replicas, Registered: v.Registered}
	for i := range l.f.Registered {
		l.f.Registered[i].Order = uint64(i + 1)
	}
	for i := range l.f.Replicas {
		r := &l.f.Replicas[i]
		r.Addr, r.LifeOver = fmt.Sprint("host", r.ID), false
		r.Linked = slices.ContainsFunc(v.Registered, func(g Registered) bool {
			return g.Instance == r.Instance &&
				g.Reachable
		})
	}
	l.f.Registered = slices.DeleteFunc(l.f.Registered, func(r Registered) bool {
		return !r.Session ||
			r.Instance.IsZero()
	})
}

func (l *lead) look(later time.Duration) Step {
	l.now += later
	l.fresh++
	return l.Look(l.now, l.f, l.fresh)
}

func (l *lead) want(later time.Duration, kind Kind, id nodeid.ReplicaID, why string) {
	l.t.Helper()
	if s := l.look(later); s.Kind != kind || id != 0 && s.ID != id {
		l.t.Fatalf("%s: %v %d (%s), want %v %d", why, s.Kind, s.ID, s.Why, kind, id)
	}
}

var three = Settings{Voters: 3}

func TestAsked(t *testing.T) {
	l := newLead(t, "a* b c/dead | | d", three)
	l.want(0, Prepare, 201, "rule 9")
	l.want(again-1, None, 0, "it is asked once")
	l.Answered(l.now, 999, Running) // this leader has not asked with the ID 999
	l.want(0, None, 0, "that was not asked")
	for range 28 {
		l.want(again, Prepare, 201, "no answer: the question is repeated, since a disk may be slow")
		l.want(0, None, 0, "once a second")
	}
	l.Answered(l.now, 201, Running) // the late answer to one of these questions
	l.want(0, AddLearner, 201, "it runs")
	l.want(20*time.Second, AddLearner, 201, "and keeps running")
	l.Begin()
	l.Answered(l.now, 201, Running)
	anew := l.fresh + 1
	l.want(0, Prepare, anew, "another leader may have had it end that replica")
	if s := l.look(preparing); s.Kind != Change || len(s.Promote) > 0 {
		t.Fatalf("it has not answered for long, so it counts as absent: %+v", s)
	}
	l.want(patience, Prepare, anew, "and is asked again after a rest, by the same ID")
	l.Answered(l.now, anew, Refused)
	l.look(0)
	newer := l.fresh + 1
	l.want(patience, Prepare, newer, "it has refused, so the ID is not used")
	l.Answered(l.now, anew, Running)
	l.want(0, None, 0, "an answer to the newer question means that the older replica has ended")
	l.Answered(l.now, newer, Running)
	l.want(0, AddLearner, newer, "the newer is added")
	l.Answered(l.now, newer, Ended)
	l.Answered(l.now+time.Second, newer, Ended)
	l.Answered(l.now, newer, Running)
	if l.prepared[0].Since != l.now {
		t.Error("an answer that is repeated prolongs the rest")
	}
	if s := l.look(0); s.Kind == AddLearner {
		t.Fatal("an ID that has ended runs again")
	}
	l.see("a* b c/dead | | ", three)
	if l.look(11 * time.Second); len(l.prepared) != 0 {
		t.Errorf("questions are kept forever: %v", l.prepared)
	}
}

// TestUsedIDIsEnded checks that an ID is added only once, whatever its instance answers. The
// instance may not know that its replica was added and removed.
func TestUsedIDIsEnded(t *testing.T) {
	l := newLead(t, "a* b c/dead | | d", three)
	l.want(0, Prepare, 201, "rule 9")
	l.Answered(l.now, 201, Running)
	l.want(0, AddLearner, 201, "it runs")
	l.f.Config.Learners = []nodeid.ReplicaID{201}
	l.f.Replicas = append(l.f.Replicas, Replica{ID: 201, Instance: nodeidtest.ID(104), SilentFor: 5 * time.Second})
	l.look(time.Second)
	l.f.Config.Learners, l.f.Replicas = nil, l.f.Replicas[:3]
	for range 30 {
		l.Answered(l.now, 201, Running)
		if s := l.look(time.Second); s.Kind == AddLearner {
			t.Fatalf("%d is added again", s.ID)
		}
	}
	l = newLead(t, "a* b c/dead | | d", three)
	l.want(0, Prepare, 201, "rule 9")
	l.Answered(l.now, 201, Running)
	l.Retired(201)
	l.Answered(l.now, 201, Running)
	if s := l.look(0); s.Kind == AddLearner {
		t.Fatal("a replica is added that retired before")
	}
}

func TestLifeOver(t *testing.T) {
	over := func(l *lead, later time.Duration) bool {
		l.t.Helper()
		l.look(later)
		return l.view.Replicas[2].LifeOver
	}
	linked := func(l *lead, is bool) { l.f.Replicas[2].Linked = is }
	anew := func(l *lead, order uint64) {
		l.f.Registered = append(l.f.Registered, Registered{Instance: nodeidtest.ID(300), Name: "c", Session: true,
			Reachable: true, Order: order})
	}
	l := newLead(t, "a* b c/unreachable | d |", three)
	if over(l, 0) {
		t.Error("a missing stream alone does not end a life")
	}
	anew(l, 9)
	if over(l, 0) {
		t.Error("a name is a claim, and the replica was heard of a moment ago")
	}
	l.f.Replicas[2].SilentFor = silenceNamed
	if !over(l, 0) {
		t.Error("its name was registered again, by a later life")
	}
	l.want(0, Change, 0, "rule 11: it is replaced at once")
	if linked(l, true); over(l, 0) {
		t.Error("two processes have one name, and both are present")
	}
	if linked(l, false); over(l, 0) {
		t.Error("an instance that was there beside it is no later life of it")
	}
	l.Begin()
	if over(l, 0) {
		t.Error("at the begin of a lead it is not known which of two instances follows the other")
	}
	l = newLead(t, "a* b c/unreachable | d |", three)
	over(l, 0)
	l.f.Replicas[2].SilentFor = silenceNamed
	if anew(l, 9); !over(l, 0) {
		t.Error("its name was registered again, by a later life")
	}
	l.f.Registered = slices.DeleteFunc(l.f.Registered,
		func(r Registered) bool { return r.Instance == nodeidtest.ID(103) })
	if !over(l, 0) {
		t.Error("its session has expired, and its name is forgotten")
	}
	l = newLead(t, "a* b c | d |", three)
	over(l, 0)
	l.f.Replicas[2].SilentFor = silenceNamed
	if anew(l, 9); over(l, 0) {
		t.Error("its stream still stands: a process that stands still is no earlier life")
	}
	l = newLead(t, "a* b c/unreachable | d |", three)
	l.f.Replicas[2].SilentFor = silenceNamed
	if anew(l, 1); over(l, 0) {
		t.Error("an earlier life of the name makes a later one be over")
	}
	l = newLead(t, "a* b c | d |", three)
	l.Retired(3)
	l.Retired(99)
	if !over(l, 0) || len(l.retired) != 1 {
		t.Error("it said itself that it has retired; its instance goes on")
	}
	if l.Begin(); !over(l, 0) {
		t.Error("a replica that has retired comes back with the next lead")
	}
	for id := range nodeid.ReplicaID(1000) {
		l.Retired(id)
	}
	if len(l.retired) > 100 {
		t.Error("retired IDs pile up between two looks")
	}
	l = newLead(t, "a* b c/over | d |", Settings{Voters: 3, Durable: true})
	l.want(0, None, 0, "with a directory it comes back")
	if p := l.Probes(l.now); len(p) != 0 || l.look(0).Next != time.Minute-time.Second {
		t.Errorf("with a directory %v are asked for nothing, and again in %v", p, l.look(0).Next)
	}
}

// TestAStreamThatEndedIsDue checks that Due is set, and Ready waits, as soon as the stream with
// a voter ends. If a rolling restart stopped the next of three voters before the first is
// replaced, the group would end.
func TestAStreamThatEndedIsDue(t *testing.T) {
	l := newLead(t, "a* b c | |", three)
	if l.look(0); l.Report().Due {
		t.Fatalf("all is well, and %q", l.Report().Next.Why)
	}
	l.f.Replicas[2].Linked = false
	if l.look(0); !l.Report().Due || !strings.Contains(l.Report().Next.Why, "\"c\"") {
		t.Errorf("the stream with a voter has ended, and the report says %+v", l.Report())
	}
	for _, c := range []struct {
		durable bool
		scene   string
		want    bool
	}{{false, "a* b c", false}, {true, "a* b c", true}, {true, "a* b c | | d", false}} {
		l := newLead(t, c.scene, Settings{Voters: 3, Durable: c.durable})
		l.f.Replicas[2].Linked = false
		if l.look(0); !l.Report().Due || l.Report().AwaitsReturn != c.want {
			t.Errorf("%q: the stream with c has ended, and the report says %+v", c.scene, l.Report())
		}
	}
	l.f.Replicas[2].Linked = true
	if l.look(0); l.Report().Due {
		t.Error("a stream is there again, and something is due")
	}
}

func TestProbes(t *testing.T) {
	l := newLead(t, "a* b c/silent | d |", three)
	probes := func(later time.Duration, want int, next time.Duration, why string) {
		t.Helper()
		l.now += later
		p := l.Probes(l.now)
		if s := l.look(0); len(p) != want ||
			want == 1 && p[0] != (Probe{ID: 3, Instance: nodeidtest.ID(103), Addr: "host3"}) || s.Next != next {
			t.Fatalf("%s: %+v, next look in %v, want %d and %v", why, p, s.Next, want, next)
		}
	}
	linked := func(is bool) { l.f.Replicas[2].Linked, l.f.Replicas[2].Active = is, is; l.look(0) }
	if s := l.look(0); s.Next != time.Millisecond {
		t.Errorf("a probe is due, and the next look is in %v", s.Next)
	}
	probes(0, 1, time.Second, "at once")
	probes(time.Second, 0, 500*time.Millisecond, "one at a time")
	l.f.Replicas[2].SilentFor = 0
	probes(500*time.Millisecond, 1, 1500*time.Millisecond, "it is given up")
	l.Probed(l.now, 3, false, nodeid.ID{})
	probes(0, 0, 100*time.Millisecond, "not at once again")
	probes(100*time.Millisecond, 1, 1500*time.Millisecond, "every 100 ms")
	linked(true)
	probes(time.Second/10, 0, lossMemory-time.Second/10, "there is a stream; only a loss is to be forgotten")
	linked(false)
	probes(0, 0, 1400*time.Millisecond, "the one before is still under way")
	l.Probed(l.now, 3, true, nodeid.ID{}) // the answer to the earlier probe
	if l.look(0); l.view.Replicas[2].LifeOver {
		t.Fatal("an answer from before there was a stream again ends a life")
	}
	probes(0, 1, 1500*time.Millisecond, "at once, since it is another absence")
	l.Probed(l.now, 3, true, nodeid.ID{})
	asked := l.Probes(l.now + time.Second)
	l.want(0, Change, 0, "rule 11")
	if !l.view.Replicas[2].LifeOver || len(asked) > 0 || len(l.Probes(l.now+time.Hour)) > 0 {
		t.Fatal("its address refuses, and it is asked again")
	}
	linked(true)
	if linked(false); l.view.Replicas[2].LifeOver {
		t.Fatal("a life that was there again is over")
	}
	l.Probes(l.now)
	l.Begin()
	if l.Probed(l.now, 3, true, nodeid.ID{}); len(l.Probes(l.now)) > 0 {
		t.Fatal("probes before the first look")
	}
	if l.look(0); l.view.Replicas[2].LifeOver {
		t.Fatal("the answer to an earlier lead's probe counts")
	}
	probes(2*time.Second, 1, 1500*time.Millisecond, "a new lead asks itself")
	if l.f.Config, l.f.Replicas = (Config{Voters: []nodeid.ReplicaID{1}}), l.f.Replicas[:1]; l.look(0).Kind == Change ||
		len(l.Probes(l.now+time.Hour)) > 0 {
		t.Fatal("a replica that is gone is probed")
	}
}

// TestRemembered checks that Leaving is remembered. A leaver that stops closes its session before
// its replica is removed, and the group must not wait for this leaver.
func TestRemembered(t *testing.T) {
	l := newLead(t, "a* b c/leaving | |", three)
	l.f.Pending = true
	l.want(0, None, 0, "in flight")
	l.see("a* b c/silent/gone | |", three)
	l.want(time.Second, Change, 0, "rule 8: it left")
	if got := l.Report().Missing; len(got) != 1 || got[0].Name != "c" {
		t.Errorf("missing: %+v", got)
	}
	l.look(10 * time.Second)
	if l.lost("c") != 0 {
		t.Error("a leaver is counted as a loss")
	}
	if l.see("a* | |", three); l.look(0).Kind == Change || len(l.known) != 1 {
		t.Errorf("%v are remembered", l.known)
	}
	var s Reconciler
	if s.MayStop(5, 0) || s.MayStop(0, 0) || s.AllLeaving() || !s.Report().Due || s.Probes(0) != nil {
		t.Error("something is said before the first look")
	}
	l = newLead(t, "a* b c | d |", three)
	l.look(0)
	if l.MayStop(2, 0) || !l.MayStop(9, 0) || l.AllLeaving() {
		t.Error("rule 13, by the last look")
	}
	l.see("a*/leaving | |", three)
	l.look(0)
	all := l.AllLeaving()
	if l.Begin(); !all || l.AllLeaving() || l.MayStop(9, 0) {
		t.Error("rule 13, by a look of an earlier lead")
	}
}

// TestRememberedTwice checks that an instance with several sessions is remembered once, and that
// the remembered entry does not count as a session.
func TestRememberedTwice(t *testing.T) {
	l := newLead(t, "a* b c/leaving/unreachable | |", three)
	l.f.Registered = append(l.f.Registered, Registered{Instance: nodeidtest.ID(103), Name: "c", Session: true,
		Order: 9})
	l.look(0)
	l.f.Registered = append(l.f.Registered[:2], Registered{Instance: nodeidtest.ID(300), Name: "c", Session: true,
		Reachable: true, Order: 5})
	if l.look(0); l.view.Replicas[2].LifeOver {
		t.Error("a session that is older than its last ends its life")
	}
	if got := l.known[2]; !got.Leaving || got.Order != 9 {
		t.Errorf("remembered: %+v", got)
	}
	l = newLead(t, "a* b c/silent | d |", three)
	l.look(0)
	l.see("a* b c/dead | d/gone |", three)
	l.want(0, None, 0, "rule 8: d has lost its session")
	l = newLead(t, "a* b c/gone/dead | |", three)
	if l.look(0); len(l.losses) > 0 {
		t.Error("a replica of unknown name counts as lost")
	}
}

func TestLosses(t *testing.T) {
	l := newLead(t, "a* b c | |", three)
	lost := func(line string, later time.Duration, want int, why string) {
		t.Helper()
		l.see(line, three)
		l.look(later)
		for _, r := range l.view.Registered {
			if r.Name == "c" && r.Lost != want {
				t.Fatalf("%s: lost %d times, want %d", why, r.Lost, want)
			}
		}
	}
	lost("a* b c | |", 0, 0, "never")
	lost("a* b c/silent | |", time.Second, 0, "silent")
	lost("a* b c | |", time.Second/2, 0, "and back in time")
	lost("a* b c/silent | |", time.Second, 0, "silent again")
	lost("a* b c/dead | |", time.Second, 1, "dead")
	lost("a* b c/dead | |", time.Second, 1, "dead still")
	l.Begin()
	lost("a* b c/dead | |", time.Second, 1, "and for the next leader, which is the same")
	lost("a* b c | |", time.Second, 1, "back")
	lost("a* b c/silent | |", time.Second, 1, "silent")
	lost("a* b c | |", time.Second, 2, "silent for 5 s in all, noticed only after it was back")
	l.Begin()
	lost("a* b c/silent | |", 0, 2, "kept")
	l.Begin()
	lost("a* b c | |", time.Minute, 2, "silent under an earlier leader, for an unknown time")
	lost("a* b c/dead/leaving | |", time.Second, 2, "leaving is no loss")
	lost("a* b | | d c", time.Second, 2, "the next life of the name has its losses")
	l.see("a* | |", three)
	for k := 0; len(l.losses) > 0; k++ {
		if s := l.look(0); s.Next == 0 || k > 10 {
			t.Fatalf("the losses %v never pass, next look in %v", l.losses, s.Next)
		} else if l.look(s.Next); l.now > time.Hour+4*time.Minute {
			t.Fatalf("a loss counts too long, %v", l.losses)
		}
	}
	if l.lost("c") != 0 || l.look(0).Next != 0 {
		t.Errorf("after two minutes: %v", l.losses)
	}
}

// TestBarredForTwoMinutes checks that three losses in two minutes exclude an instance, and that
// evaluations at the times in Next include it again when the losses are old enough.
func TestBarredForTwoMinutes(t *testing.T) {
	five := Settings{Voters: 5}
	l := newLead(t, "a* b c d e | |", five)
	for range 3 {
		l.see("a* b c d e/dead | |", five)
		l.f.Pending = true
		l.look(time.Second)
		l.see("a* b c d e | |", five)
		l.look(time.Second)
	}
	l.see("a* b c | d | e", five)
	l.want(time.Second, None, 0, "restless")
	for range 5 {
		if s := l.look(l.look(0).Next); s.Kind == Prepare && l.now > time.Hour+lossMemory {
			return
		}
	}
	t.Error("it never comes back")
}
