package lead

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// shrunk returns the facts of the leader of three voters. The third voter has ended, and a fourth
// instance could replace it.
func shrunk() voters.Facts {
	f := voters.Facts{
		Self: 1, Settings: voters.Settings{Voters: 3, Founders: []string{"a", "b", "c", "d"}},
		Config: voters.Config{Voters: []uint64{1, 2, 3}},
	}
	for id := range uint64(4) {
		who := nodeidtest.ID(id + 1)
		if id < 3 {
			f.Replicas = append(f.Replicas, voters.Replica{
				ID: id + 1, Instance: who, Addr: "x:1", Active: id < 2, Linked: id < 2, CaughtUp: id < 2,
				Full: id < 2, Settled: id < 2, SilentFor: time.Duration(id/2) * time.Hour,
			})
		}
		if id != 2 {
			f.Registered = append(f.Registered, voters.Registered{
				Instance: who, Name: string(rune('a' + id)), Addr: "x:1", Session: true, Reachable: true, Order: id + 1,
			})
		}
	}
	return f
}

// prepared lets the fourth instance answer that it runs a replica, and returns the orders of the
// next evaluation.
func prepared(t *testing.T, l *Lead) (now time.Duration, o Orders) {
	t.Helper()
	now = time.Hour
	o = l.Look(now, shrunk(), 5, 99)
	for range 100 { // the third voter must have ended long enough ago
		if o.Prepare != nil {
			break
		}
		for _, p := range o.Probes {
			l.Probed(now, 5, p, founding.Refused, nodeid.ID{})
		}
		now += Pause
		o = l.Look(now, shrunk(), 5, 99)
	}
	if o.Prepare == nil {
		t.Fatalf("no instance is asked for a replica: %+v", l.Report())
	}
	return now, o
}

func answer(step voters.Step, state founding.PreparedState) []byte {
	return append(binary.AppendUvarint([]byte{1, 8}, step.ID), byte(state), 0)
}

// TestAStepIsCarriedOnce checks that a step is passed to the log once while nothing changes, and
// again after a second.
func TestAStepIsCarriedOnce(t *testing.T) {
	var l Lead
	now, o := prepared(t, &l)
	step := *o.Prepare
	if look, _ := l.Answered(now, 5, step, founding.Answered, answer(step, founding.Running)); !look {
		t.Fatal("an answer calls for no look")
	}
	carried := 0
	for at := now; at < now+tryAgain; at += Pause {
		if c := l.Look(at, shrunk(), 5, 99).Carry; c != nil {
			carried++
			if c.Step.Kind != voters.AddLearner || c.About.Instance != step.Instance || c.About.Raft != step.ID ||
				c.Term != 5 || c.Again {
				t.Errorf("carried %+v", c)
			}
		}
	}
	if carried != 1 {
		t.Errorf("the step was carried %d times within a second", carried)
	}
	if c := l.Look(now+2*tryAgain, shrunk(), 5, 99).Carry; c == nil || !c.Again {
		t.Errorf("a step that may be lost is carried again as %+v", c)
	}
}

func TestAnswersOfAnotherLeadMeanNothing(t *testing.T) {
	var l Lead
	now, o := prepared(t, &l)
	step, other := *o.Prepare, *o.Prepare
	other.ID++
	for name, look := range map[string]bool{
		"silence": first(l.Answered(now, 5, step, founding.Silent, nil)),
		"another term": first(l.Answered(now, 4, step, founding.Answered,
			answer(step, founding.Running))),
		"another replica": first(l.Answered(now, 5, step, founding.Answered,
			answer(other, founding.Running))),
		"no words":                  first(l.Answered(now, 5, step, founding.Answered, []byte{1, 2, 3})),
		"a probe of another term":   l.Probed(now, 4, voters.Probe{ID: 2}, founding.Refused, nodeid.ID{}),
		"a stranger at the address": l.Probed(now, 5, voters.Probe{ID: 2}, founding.Foreign, nodeid.ID{}),
		"silence at the address":    l.Probed(now, 5, voters.Probe{ID: 2}, founding.Silent, nodeid.ID{}),
		"the end of an unnamed voter": l.PeerLost(nodeidtest.ID(9),
			[]founding.Voter{{Raft: 2, Instance: nodeidtest.ID(2)}}),
	} {
		if look {
			t.Errorf("%s calls for a look", name)
		}
	}
	if look, why := l.Answered(now, 5, step, founding.Answered, answer(step, founding.Declined)); !look || why != "" {
		t.Errorf("an instance that declines: %v, %q", look, why)
	}
	if !l.Probed(now, 5, voters.Probe{ID: 2}, founding.Other, nodeid.ID{}) ||
		!l.PeerLost(nodeidtest.ID(2), []founding.Voter{{Raft: 2, Instance: nodeidtest.ID(2)}}) {
		t.Error("the end of a life calls for no look")
	}
	l.Rest(now)
	if _, leads := l.VoterStatus(1, 0, nodeidtest.ID(1)); leads || l.Leads() ||
		l.PeerLost(nodeidtest.ID(2), []founding.Voter{{Raft: 2, Instance: nodeidtest.ID(2)}}) {
		t.Error("it does not lead, and speaks for the group")
	}
}

func first(look bool, _ string) bool { return look }

// TestWhenToLook checks when the next evaluation is due: a second after the last one while this
// instance leads, 5 s if it is alone, earlier if a change was reported, but never less than 50 ms
// after the last evaluation.
func TestWhenToLook(t *testing.T) {
	var l Lead
	if due := l.Due(7, true); due != 7 {
		t.Errorf("the first look is due at %v", due)
	}
	if due := l.Due(7, false); due != 7+never {
		t.Errorf("an instance that does not lead looks at %v", due)
	}
	well := shrunk()
	well.Settings.Founders, well.Settings.Voters = nil, 1
	well.Config, well.Replicas = voters.Config{Voters: []uint64{1}}, well.Replicas[:1]
	well.Registered = well.Registered[:1]
	l.Look(time.Minute, well, 5, 99)
	for wanted, after := range map[bool]time.Duration{true: Pause, false: everyAlone} {
		if due := l.Due(time.Minute, wanted); due != time.Minute+after {
			t.Errorf("wanted: %v, the next look is after %v", wanted, due-time.Minute)
		}
	}
	second := well
	another := voters.Registered{Instance: nodeidtest.ID(77), Name: "second"}
	second.Registered = append(slices.Clone(well.Registered), another)
	l.Look(time.Minute, second, 5, 99)
	if due := l.Due(time.Minute, false); due > time.Minute+every {
		t.Errorf("with a second instance, the next look is after %v", due-time.Minute)
	}
	if !l.Fresh(time.Minute+Pause-1) || l.Fresh(time.Minute+Pause) {
		t.Error("a look is good for 50 ms")
	}
}
