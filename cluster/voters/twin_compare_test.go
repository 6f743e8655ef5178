package voters

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

func after(c Config, s Step) Config {
	gone := func(id nodeid.ReplicaID) bool { return slices.Contains(s.Demote, id) || slices.Contains(s.Remove, id) }
	next := Config{Voters: slices.DeleteFunc(slices.Clone(c.Voters), gone)}
	next.Voters = append(next.Voters, s.Promote...)
	next.Learners = append(slices.Clone(c.Learners), s.Demote...)
	next.Learners = slices.DeleteFunc(next.Learners, func(id nodeid.ReplicaID) bool {
		return slices.Contains(s.Remove, id) || slices.Contains(s.Promote, id)
	})
	return next
}

func (t *twin) judge(s Step) string {
	if s.Why == "" {
		return "a step without a reason"
	}
	t.survey()
	if s.Kind != None && (t.v.Pending || len(t.v.Config.Outgoing) > 0 || !t.isVoter(t.v.Self) ||
		!t.majority(t.v.Config.Voters) || t.target == 0) {
		return "nothing can be done in this view"
	}
	if t.v.Pending || len(t.v.Config.Outgoing) > 0 || !t.isVoter(t.v.Self) || !t.majority(t.v.Config.Voters) ||
		t.target == 0 {
		return ""
	}
	if !t.sound(t.v.Self) && t.heir(t.v.Config.Voters) {
		return t.judgeTransfer(s)
	}
	best, some := t.best()
	now := t.worth(t.v.Config.Voters)
	pairs, swap := t.spread()
	due := some && (!t.sound(t.v.Self) || slices.Compare(best[:3], now[:3]) < 0)
	switch {
	case s.Kind == Transfer:
		return "the lead is handed over for no reason"
	case due || swap:
		if s.Kind != Change {
			return fmt.Sprintf("the voters are worth %v and could be worth %v; zones %v %d", now, best, swap, pairs)
		}
	}
	if s.Kind != Change {
		return t.judgeComing(s)
	}
	next := after(t.v.Config, s)
	if why := t.forbidden(next.Voters); why != "" && !reflect.DeepEqual(sorted(next.Voters),
		sorted(t.v.Config.Voters)) {
		return why
	}
	switch got := t.worth(next.Voters); {
	case due && got != best:
		return fmt.Sprintf("the new voters are worth %v and could be worth %v", got, best)
	case !due && swap && (got[4] != 1 || got[5] != pairs || len(next.Voters) != len(t.v.Config.Voters)):
		return fmt.Sprintf("%d pairs of voters share a zone, could be %d, %v", got[5], pairs, got)
	case !due && !swap && (len(s.Promote)+len(s.Demote) > 0 || len(next.Voters) != len(t.v.Config.Voters)):
		return fmt.Sprintf("voters change from %v to %v for nothing", now, got)
	}
	return t.judgeRest(s, next)
}

func (t *twin) judgeTransfer(s Step) string {
	full := func(id nodeid.ReplicaID) bool {
		return id != t.v.Self && t.sound(id) && t.active(id) && t.replica(id).Full
	}
	switch {
	case s.Kind == Transfer && (!t.isVoter(s.ID) || !full(s.ID)):
		return "the lead goes to a replica that cannot take it"
	case s.Kind == Transfer && slices.ContainsFunc(t.v.Config.Voters, func(id nodeid.ReplicaID) bool {
		return full(id) && t.build(id) > t.build(s.ID)
	}):
		return "the lead goes to a build that is not the newest"
	case s.Kind != Transfer && slices.ContainsFunc(t.v.Config.Voters, full), s.Kind == Change:
		return "a leader that leaves does not hand over first"
	}
	return ""
}

func (t *twin) build(id nodeid.ReplicaID) int64 {
	r, _ := t.record(t.replica(id).Instance)
	return r.Build
}

// judgeRest checks which replicas are removed and which are kept as learners (rules 10 and 11).
func (t *twin) judgeRest(s Step, next Config) string {
	if len(s.Promote)+len(s.Demote)+len(s.Remove) == 0 {
		return "a change that changes nothing"
	}
	for _, id := range next.Learners {
		if !t.sound(id) {
			return fmt.Sprintf("learner %d is dead or leaving, and is kept", id)
		}
	}
	kept := 0
	for _, id := range slices.Concat(next.Voters, next.Learners) {
		if t.sound(id) {
			kept++
		}
	}
	for _, id := range s.Remove {
		if t.sound(id) && kept < t.wanted {
			return fmt.Sprintf("%d lives, and is removed with only %d of %d left", id, kept, t.wanted)
		}
	}
	if len(s.Demote) > 0 && kept > t.wanted && kept-t.wanted > len(t.v.Config.Learners) {
		return "more are kept than are wanted"
	}
	return ""
}

// judgeComing checks which instances are asked and added (rule 9), and that no needed instance is
// missing.
func (t *twin) judgeComing(s Step) string {
	have, free := 0, 0
	for _, id := range slices.Concat(t.v.Config.Voters, t.v.Config.Learners) {
		if t.sound(id) {
			have++
		}
	}
	isOpen := false
	for _, r := range t.open {
		p, asked := t.newest(r.Instance)
		runs := asked && p.State == Running && !slices.Contains(slices.Concat(t.v.Config.Voters, t.v.Config.Learners),
			p.ID)
		unanswered := asked && p.State == Asked
		waits := unanswered && t.v.Now-p.Since < 30*time.Second && t.v.Now-p.Sent < time.Second
		if !waits {
			free++
		}
		if r.Instance != s.Instance {
			continue
		}
		isOpen = true
		switch {
		case s.Kind == AddLearner && (!runs || p.ID != s.ID):
			return "an instance is added that runs no replica with that ID"
		case s.Kind == Prepare && (runs || waits):
			return "an instance is asked twice"
		case s.Kind == Prepare && unanswered && !t.v.Config.has(p.ID) && s.ID != p.ID:
			return "a question is repeated with another ID"
		case s.Kind == Prepare && (!unanswered || t.v.Config.has(p.ID)) && s.ID != t.v.Fresh:
			return "an ID that may have been used"
		}
	}
	switch {
	case s.Kind != None && !isOpen:
		return "an instance is brought in that may not vote"
	case s.Kind != None && have >= t.wanted && !t.quiet():
		return "more are brought in than are wanted"
	case s.Kind == None && have < t.wanted && free == len(t.open) && free > 0 && t.v.Fresh != 0:
		return "a replica is missing, and no instance is asked"
	case s.Kind == None && have >= t.wanted && slices.ContainsFunc(t.v.Config.Learners,
		func(id nodeid.ReplicaID) bool { return !t.sound(id) }):
		return "a learner that is dead or leaving is kept"
	}
	return ""
}

func budget(few int) int {
	if n, err := strconv.Atoi(os.Getenv("MORTISE_SEEDS")); err == nil {
		return n
	}
	if testing.Short() {
		return few / 10 / slowly
	}
	return few / slowly
}

func TestTwin(t *testing.T) {
	kinds := map[string]int{}
	n := budget(100_000)
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		v := randomView(rng)
		before := fmt.Sprint(v)
		s := Reconcile(v)
		if why := (&twin{v: v}).judge(s); why != "" {
			t.Fatalf("MORTISE_SEED=%d: %s\n%+v\nstep %+v", seed, why, v, s)
		}
		if fmt.Sprint(v) != before {
			t.Fatalf("MORTISE_SEED=%d: the view was changed", seed)
		}
		if again := Reconcile(shuffled(rng, v)); !reflect.DeepEqual(s, again) {
			t.Fatalf("MORTISE_SEED=%d: in another order it says\n%+v, not\n%+v\n%+v", seed, again, s, v)
		}
		kinds[s.Kind.String()+sizes(v, s)]++
	}
	t.Log(kinds)
	for _, want := range []string{"prepare", "add learner", "transfer", "none", "change 1>3", "change 3>1",
		"change 3>3", "change 1>2", "change 2>1", "change 5>3", "change 3>5", "change 1>1"} {
		if kinds[want] < n/20_000 {
			t.Errorf("only %d random views lead to %q: they prove nothing about it", kinds[want], want)
		}
	}
}

func sizes(v View, s Step) string {
	if s.Kind != Change {
		return ""
	}
	return fmt.Sprintf(" %d>%d", len(v.Config.Voters), len(after(v.Config, s).Voters))
}
