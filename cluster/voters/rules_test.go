package voters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// scene makes a view from a line: voters | learners | other instances. A star marks the leader's
// name. Flags after slashes describe an instance's state.
func scene(t *testing.T, line string, settings Settings) View {
	v := View{Now: time.Hour, Fresh: 99, Settings: settings}
	for part, names := range strings.Split(line, "|") {
		for _, token := range strings.Fields(names) {
			fields := strings.Split(token, "/")
			n := len(v.Registered) + 1
			name := strings.TrimSuffix(fields[0], "*")
			reg := Registered{Instance: nodeidtest.ID(uint64(100 + n)), Name: name, Session: true, Reachable: true,
				Order: uint64(n)}
			rep := Replica{ID: nodeid.ReplicaID(n), Instance: reg.Instance, CaughtUp: true, Full: true, Settled: true,
				Active: true}
			prep := Prepared{ID: nodeid.ReplicaID(50 + n), Instance: reg.Instance, Since: v.Now, Sent: v.Now}
			for _, flag := range fields[1:] {
				if !wrong(flag, &reg, &rep, &prep) {
					t.Fatalf("what is %q?", flag)
				}
			}
			if strings.HasSuffix(fields[0], "*") {
				v.Self = rep.ID
			}
			v.Registered = append(v.Registered, reg)
			if prep.Since != v.Now || prep.State != Asked || strings.Contains(token, "/asked") {
				v.Prepared = append(v.Prepared, prep)
			}
			switch part {
			case 0:
				v.Config.Voters, v.Replicas = append(v.Config.Voters, rep.ID), append(v.Replicas, rep)
			case 1:
				v.Config.Learners, v.Replicas = append(v.Config.Learners, rep.ID), append(v.Replicas, rep)
			}
		}
	}
	return v
}

func wrong(flag string, reg *Registered, rep *Replica, prep *Prepared) bool {
	silent := func(d time.Duration) { rep.Active, rep.SilentFor, reg.Reachable = false, d, false }
	switch flag {
	case "silent":
		silent(4 * time.Second)
	case "unheard":
		silent(100 * time.Millisecond)
	case "dead":
		silent(5 * time.Second)
	case "minute":
		silent(time.Minute)
	case "over":
		silent(time.Second)
		rep.LifeOver = true
	case "leaving":
		reg.Leaving = true
	case "nosession":
		reg.Session = false
	case "gone":
		reg.Instance = nodeidtest.ID(0) // the instance is unknown
	case "behind":
		rep.CaughtUp, rep.Full = false, false
	case "unsettled":
		rep.Settled = false
	case "notfull":
		rep.Full = false
	case "unreachable":
		reg.Reachable = false
	case "asked":
	case "running":
		prep.State = Running
	case "ended":
		prep.State = Ended
	case "refused":
		prep.State = Refused
	case "7s":
		prep.Since, prep.Sent = prep.Since-7*time.Second, prep.Sent-7*time.Second
	case "12s":
		prep.Since, prep.Sent = prep.Since-12*time.Second, prep.Sent-12*time.Second
	case "rules3":
		reg.Rules = 3
	case "rules5":
		reg.Rules = 5
	case "build1":
		reg.Build = 1
	case "build2":
		reg.Build = 2
	case "lost1":
		reg.Lost = 1
	case "lost3":
		reg.Lost = 3
	default:
		zone, ok := strings.CutPrefix(flag, "zone=")
		reg.Zone = zone
		return ok
	}
	return true
}

func said(v View, s Step) string {
	name := func(id nodeid.ReplicaID) string {
		for _, r := range v.Replicas {
			if r.ID == id {
				return v.Registered[id-1].Name
			}
		}
		return "?"
	}
	text := s.Kind.String()
	for _, list := range []struct {
		sign string
		ids  []nodeid.ReplicaID
	}{{" +", s.Promote}, {" ~", s.Demote}, {" -", s.Remove}} {
		for _, id := range list.ids {
			text += list.sign + name(id)
		}
	}
	switch s.Kind {
	case Prepare, AddLearner:
		text += " " + v.Registered[nodeidtest.Number(s.Instance)-101].Name
	case Transfer:
		text += " " + name(s.ID)
	}
	return text
}

func TestRules(t *testing.T) {
	five := Settings{Voters: 5}
	durable := Settings{Voters: 3, Durable: true}
	fiveOf2, fiveOf3 := Settings{Voters: 5, Replicas: 2}, Settings{Voters: 5, Replicas: 3}
	rules4 := Settings{Voters: 3, Rules: 4}
	abc := Settings{Voters: 3, Founders: []string{"a", "b", "c"}}
	for _, c := range []struct {
		rule     string
		settings Settings
		scene    string
		want     string
	}{
		// Rule 8.
		{"8: as it should be", three, "a* b c", "none"},
		{"8: presence alone gives no vote", three, "a* b c | | d e", "none"},
		{"8: a voter whose session ended stays while raft hears it", three, "a* b/nosession c/gone | | d", "none"},
		{"8: no more votes than Replicas", fiveOf3, "a* b c | | d e", "none"},
		{"8: the first ones get the votes", fiveOf3, "a*/zone=x | b/zone=x | c/zone=x d/zone=y", "prepare c"},
		{"8: a learner beyond Replicas gets no vote", fiveOf2, "a* | b c |", "change -c"},
		{"8: voters beyond Replicas stay", fiveOf2, "a* b c d e | | f", "none"},
		{"8: a lost voter's seat is free", fiveOf3, "a* b c/dead | | d e", "prepare d"},
		{"8: a silent voter keeps its seat", fiveOf3, "a* b c/silent | | d e", "none"},
		{"8: a restarted instance has its own seat", fiveOf3, "a* b c/dead | | d c", "prepare c"},
		{"8: a build that cannot read the group's rules gets no replica", rules4, "a* | b | c/rules3", "none"},
		{"8: a newer build gets one", rules4, "a* | b | c/rules5", "prepare c"},
		{"8: founders only", abc, "a* | | d e f", "none"},
		{"8: a voter that is no longer a founder is removed", abc, "a* b d | c |", "change +c -d"},
		{"8: no majority, no change", three, "a* b/dead c/dead | d |", "none"},
		{"8: the new majority must be able to commit", five, "a* b/silent c/silent d/leaving e/leaving",
			"change ~c -e"},
		{"8: a leaver is not brought in", three, "a* | | b/leaving c/unreachable d/nosession", "none"},
		{"8: zones: a third is chosen in an empty zone", three,
			"a*/zone=x b/zone=y c/dead/zone=y | | d/zone=x e/zone=y f/zone=z", "prepare f"},
		{"8: zones: spread when all is quiet", three, "a*/zone=x b/zone=x c/zone=y | | d/zone=z", "prepare d"},
		{"8: zones: exchanged in one change", three, "a*/zone=x b/zone=x c/zone=y | d/zone=z |", "change +d -b"},
		{"8: zones: the leader stays where it is", three, "a/zone=x b*/zone=x c/zone=y | d/zone=z |", "change +d -a"},
		{"8: zones: no return for them after a loss", three, "a*/zone=x b/zone=x c/zone=y | | d/zone=z/lost1", "none"},
		{"8: zones: an unknown zone is no reason", three, "a*/zone=x b/gone c/gone | | d/zone=z", "none"},
		{"8: zones: not while a voter is silent", three, "a*/zone=x b/zone=x c/zone=y/silent | d/zone=z |", "none"},
		// Rule 9.
		{"9: asked first", three, "a* b c/dead | | d", "prepare d"},
		{"9: all are asked before one is added", three, "a* | | b/running c", "prepare c"},
		{"9: then added", three, "a* b c/dead | | d/running", "add learner d"},
		{"9: an answer is waited for", three, "a* b c/dead | | d/asked", "none"},
		{"9: not forever, the next is asked", three, "a* b c/dead | | d/asked/7s e", "prepare e"},
		{"9: after a while asked anew", three, "a* b c/dead | | d/asked/12s", "prepare d"},
		{"9: an ID that has ended is not added", three, "a* b c/dead | | d/ended/7s", "prepare d"},
		{"9: one that refused is left alone for a while", three, "a* b c/dead | | d/refused", "change ~b -c"},
		{"9: not promoted before it knows the others", three, "a* b c/dead | d/unsettled |", "none"},
		{"9: not promoted before it has caught up", three, "a* b c/dead | d/behind |", "none"},
		{"9: nor without a session", three, "a* b c/dead | d/nosession |", "none"},
		{"9: promoted, and the one it replaces removed, at once", three, "a* b c/dead | d |", "change +d -c"},
		// Rule 10.
		{"10: 1 to 3 in one change", three, "a* | b c |", "change +b +c"},
		{"10: no even counts on the way", three, "a* | b | c", "prepare c"},
		{"10: 2 instances: one votes, one learns", three, "a* | | b", "prepare b"},
		{"10: 2 instances: at rest", three, "a* | b |", "none"},
		{"10: 3 to 1: the other live one is a learner", three, "a* b c/dead", "change ~b -c"},
		{"10: 3 to 1: the leader is the one that votes", three, "a b c*/leaving", "transfer b"},
		{"10: 3 to 5", five, "a* b c | d e |", "change +d +e"},
		{"10: 5 to 3, one learns", five, "a* b c d e/dead", "change ~d -e"},
		{"10: 5 to 3 by settings, the silent go first", three, "a* b/silent c d e", "change -b -e"},
		{"10: two voters, one becomes a learner", three, "a* b", "change ~b"},
		// Rule 11.
		{"11: silence is not death at once", three, "a* b c/silent | d |", "none"},
		{"11: 5 s of silence are", three, "a* b c/dead | d |", "change +d -c"},
		{"11: a life that is over at once", three, "a* b c/over | d |", "change +d -c"},
		{"11: durable: a minute", durable, "a* b c/dead | d |", "none"},
		{"11: durable: it comes back from a refusing address", durable, "a* b c/over | d |", "none"},
		{"11: durable: and no longer", durable, "a* b c/minute | d |", "change +d -c"},
		{"11: left in while its place is being filled", three, "a* b c/dead | d/behind |", "none"},
		{"11: two dead of five, one candidate ready", five, "a* b c d/dead e/dead | f | g", "change +f -e"},
		{"11: dead learners go", three, "a* b c | d/dead |", "change -d"},
		{"11: and those that leave", three, "a* b c | d/leaving |", "change -d"},
		{"11: a spare is kept while a voter is silent", three, "a* b c/silent | d |", "none"},
		{"11: and while one was lost lately", three, "a* b c/lost1 | d |", "none"},
		{"11: else it goes", three, "a* b c | d |", "change -d"},
		{"11: one that was lost three times stays out", five, "a* b c d | | e/lost3", "change ~d"},
		{"11: and makes no learner of itself", three, "a* | | b/lost3", "none"},
		{"11: unless a majority of the present instances needs it", three, "a* | b | c/lost3", "prepare c"},
		{"11: its place is kept meanwhile", three, "a* b c/over | | d/lost3/asked", "none"},
		{"11: no more of them than that takes", three, "a* b c/over | d/lost3 | e/lost3", "change +d -c"},
		{"11: nor any, if enough others are there", five, "a* b c/over d/over e | | f/lost3 g/lost3", "change -c -d"},
		// Rule 12.
		{"12: the lead first", three, "a*/leaving b c", "transfer c"},
		{"12: to the newest build", three, "a*/leaving/build1 b/build2 c/build1", "transfer b"},
		{"12: even if it was lost", three, "a*/leaving b/build2/lost1 c/build1", "transfer b"},
		{"12: an unknown build is the oldest", three, "a*/leaving/build2 b/build1 c", "transfer b"},
		{"12: the rules come before the build", three, "a*/leaving b/rules5/build1 c/rules3/build2", "transfer b"},
		{"12: not to a build that lacks entries", three, "a*/leaving b/build1 c/build2/notfull", "transfer b"},
		{"12: of equal builds to the one that was lost least", three, "a*/leaving b c/lost1", "transfer b"},
		{"12: then to the one that has registered last", three, "a*/leaving d c b", "transfer b"},
		{"12: to one that has the whole log", three, "a*/leaving b/notfull c", "transfer c"},
		{"12: or it waits", three, "a*/leaving b/notfull c/silent", "none"},
		{"12: not to one that leaves itself", three, "a*/leaving b/leaving c", "transfer c"},
		{"12: last voter: a successor is brought in", three, "a*/leaving | | b", "prepare b"},
		{"12: promoted beside it", three, "a*/leaving | b |", "change +b"},
		{"12: then the lead", three, "a*/leaving b", "transfer b"},
		{"12: then the new leader removes it", three, "a/leaving b*", "change -a"},
		{"12: two successors keep the count odd", three, "a*/leaving | b c |", "change +b +c"},
		{"12: all voters leave, one comes", three, "a*/leaving b/leaving c/leaving | d |", "change +d -c"},
		{"12: a restless successor is better than none", three, "a*/leaving | | b/lost3", "prepare b"},
		{"12: no instance is left", three, "a*/leaving b/leaving", "none"},
		// Rule 13.
		{"13: several leave in one change", three, "a* b/leaving c/leaving | d e |", "change +d +e -b -c"},
		{"13: and none comes", five, "a* b c d/leaving e/leaving", "change -d -e"},
		{"13: 3 to 1", three, "a* b/leaving c/leaving", "change -b -c"},
	} {
		v := scene(t, c.scene, c.settings)
		if got := said(v, Reconcile(v)); got != c.want {
			t.Errorf("%s: %q: %s, want %s (%s)", c.rule, c.scene, got, c.want, Reconcile(v).Why)
		}
	}
}

func TestOneChangeAtATime(t *testing.T) {
	v := scene(t, "a* b c/dead | d |", Settings{Voters: 3})
	pending, joint := v, v
	pending.Pending = true
	joint.Config.Outgoing = []nodeid.ReplicaID{1, 2, 4}
	for _, v := range []View{pending, joint} {
		if s := Reconcile(v); s.Kind != None || !Explain(v).Due {
			t.Errorf("%+v is proposed while a change is in flight", s)
		}
	}
	v.Self = 4
	if s := Reconcile(v); s.Kind != None {
		t.Errorf("a replica without a vote proposes %+v", s)
	}
	if s := Reconcile(View{}); s.Kind != None || s.Why == "" {
		t.Errorf("an empty view leads to %+v", s)
	}
}

// TestOneVoteEach checks that one process, or one founder's name, has one vote. If one had a second
// vote, too few processes could be a majority.
func TestOneVoteEach(t *testing.T) {
	v := scene(t, "a* b c | d e/unreachable |", Settings{Voters: 5})
	v.Replicas[4].Instance = v.Replicas[1].Instance
	if got := said(v, Reconcile(v)); got != "change -e" {
		t.Errorf("a process that votes has a second replica: %s", got)
	}
	v = scene(t, "a* | b c |", Settings{Voters: 3, Founders: []string{"a", "b", "c"}})
	v.Registered[2].Name = "b"
	if got := said(v, Reconcile(v)); strings.Contains(got, "+") {
		t.Errorf("two processes with one founder's name: %s", got)
	}
	v = scene(t, "a* b c/over | d |", Settings{Voters: 3, Founders: []string{"a", "b", "c"}})
	v.Registered[3].Name = "c"
	if got := said(v, Reconcile(v)); got != "change +c -c" {
		t.Errorf("a founder that came back takes its own place: %s", got)
	}
}

// TestNext checks that Next is the next time at which the result changes without an event.
func TestNext(t *testing.T) {
	for scene_, want := range map[string]time.Duration{
		"a* b c/silent | d |":       time.Second,
		"a* b c":                    0,
		"a* b c/dead | | d/asked":   time.Second,
		"a* b c/dead | d/behind |":  100 * time.Millisecond,
		"a*/leaving b/notfull":      100 * time.Millisecond,
		"a* b c/dead | | d/running": time.Second,
	} {
		v := scene(t, scene_, Settings{Voters: 3})
		if s := Reconcile(v); s.Next != want {
			t.Errorf("%q: look again after %v, want %v (%v)", scene_, s.Next, want, s)
		}
	}
}

func TestSentences(t *testing.T) {
	for line, want := range map[string]string{
		"a* b c/dead | d |": `"c" is removed (it is silent), "d" gets a vote`,
		"a* b c/leaving":    `"b" becomes a learner, "c" is removed (it leaves)`,
		"a* b/dead c/dead":  "only 1 of 3 voters are in contact: no change can be committed",
		"a* b c/silent":     `no contact with "c"`,
		"a* b c/dead | | d": `"d" is asked to start a replica since there are only 2 of 3 replicas`,
		"a* | | b/lost3": `1 of 1 eligible instances vote, the largest odd number up to Voters, 3; "b" was lost 3 times in ` +
			`two minutes and gets no replica until it is steady`,
		"a* b c/gone/dead | d/behind|": `replica 0000000000000003 cannot be replaced yet: waiting until "d" has caught up ` +
			`(it has 0 of 0 entries)`,
		"a* b c/leaving | d/silent |": `"c" cannot be replaced yet: waiting for a replacement`,
	} {
		if got := Reconcile(scene(t, line, Settings{Voters: 3})).Why; got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
	if got := fmt.Sprint(None, Prepare, AddLearner, Change, Transfer,
		Kind(9)); got != "none prepare add learner change transfer unknown" {
		t.Error(got)
	}
}

// TestHowFarALearnerIs checks that the reason of a wait says what a learner lacks, so an operator
// can tell progress from a standstill.
func TestHowFarALearnerIs(t *testing.T) {
	for _, c := range []struct {
		scene string
		alter func(b, c *Replica)
		want  string
	}{
		{"a* | b/behind |", func(b, _ *Replica) { b.Match = 120 }, `"b" has caught up (it has 120 of 5678 entries)`},
		{"a* | b/behind |", func(b, _ *Replica) { b.Match = 6000 }, `"b" has caught up (it has 6000 of 6000 entries)`},
		{"a* | b/behind |", func(b, _ *Replica) { b.Snapshot = 1 << 20 },
			`"b" has caught up (it receives a snapshot of 1048576 bytes)`},
		{"a* | b/nosession c |", nil, `"b" has a session`},
		{"a* | b/unsettled c |", nil, `"b" has received the present configuration`},
		{"a* | b/behind c/behind |", func(b, c *Replica) { b.Match, c.Snapshot = 7, 9 },
			`"b" has caught up (it has 7 of 5678 entries), and "c" has caught up (it receives a snapshot of 9 bytes)`},
	} {
		v := scene(t, c.scene, three)
		if v.Last = 5678; c.alter != nil {
			c.alter(&v.Replicas[1], &v.Replicas[len(v.Replicas)-1])
		}
		if got := Explain(v).Next.Why; got != "waiting until "+c.want {
			t.Errorf("%q: %s, want %s", c.scene, got, c.want)
		}
	}
}

// TestHeir checks to which voters an operator can move the lead, and what it is told of the others.
func TestHeir(t *testing.T) {
	for line, want := range map[string]Refusal{
		"x* b c":              LeadsNow,
		"a* x c":              Fit,
		"a* x/notfull":        Fit, // raft sends it the rest first
		"a* x/nosession c":    Fit,
		"a* x/silent c":       Silent,
		"a* x/unheard c":      Fit, // a new leader has not heard from every voter yet
		"a* x/dead c x":       Fit, // the replica of a restarted instance, beside that of its predecessor
		"a* x x/dead c":       Fit,
		"a* x/leaving c":      Leaves,
		"a* b c | x |":        NoVote,
		"a* b c | | x":        NoVote,
		"a* x/dead c | | x":   Silent,
		"a* b c":              NoInstance,
		"a* b c/leaving":      NoInstance,
		"a*/leaving x c":      Fit,
		"a* x/leaving x/gone": Leaves,
	} {
		v := scene(t, line, three)
		id, got := Heir(v, "x")
		if got != want || (id != 0) != (want == Fit || want == LeadsNow) || id != 0 && v.Registered[id-1].Name != "x" {
			t.Errorf("%q: replica %d, %d, want %d", line, id, got, want)
		}
	}
	v := scene(t, "a* b c", three)
	v.Others = bystanders{{Instance: nodeidtest.ID(9), Name: "x", Session: true}}
	if _, got := Heir(v, "x"); got != NoVote {
		t.Errorf("an instance that cannot get a vote: %d", got)
	}
	if _, got := new(Reconciler).Heir("x"); got != NoInstance {
		t.Errorf("before the first look: %d", got)
	}
}
