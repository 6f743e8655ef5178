package replica

import (
	"errors"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

func leading(t *testing.T) (*Core, *Questions, *heard) {
	t.Helper()
	machine, err := lockfsm.New(lockfsm.Charter{Group: 1, FoundedUnixMS: 1, Rules: lockfsm.RulesVersion,
		SessionTTL: time.Second, Limits: lockfsm.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	host := &heard{}
	c := NewCore(CoreConfig{
		Group: 1, ID: 4, Machine: machine, Keeper: toKeeper{host}, Cluster: toCluster{host}, Host: host,
	})
	if err := c.Apply(1, 1, lockfsm.Command{Kind: lockfsm.Born}.Append(nil)); err != nil {
		t.Fatal(err)
	}
	c.Role(raftlog.Role{Term: 2, Leader: 4, Leading: true})
	c.Leads(2)
	return c, c.Questions, host
}

func (a *Asked) answered() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

func ask(t *testing.T, q *Questions, question Question) *Asked {
	t.Helper()
	one, err := q.Ask(question)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// TestQuestionsAreAnsweredBehindTheirRound checks that each question is answered once, after its
// round is confirmed, and that a dropped question is not answered.
func TestQuestionsAreAnsweredBehindTheirRound(t *testing.T) {
	c, q, host := leading(t)
	one, left := ask(t, q, Question{Op: OpCheck, Key: "k", Token: 7}), ask(t, q, Question{Op: OpPeek, Key: "k"})
	q.Drop(left)
	c.Confirmed(2, 5)
	c.Confirmed(2, QuestionRound|left.Number)
	if one.answered() || left.answered() || host.rounds != 1 {
		t.Fatalf("answered before its round: %v, %v; %d rounds of the keeper", one.answered(), left.answered(),
			host.rounds)
	}
	c.Confirmed(2, QuestionRound|one.Number)
	c.Confirmed(2, QuestionRound|one.Number)
	if a, err := one.Answer(); !one.answered() || err != nil || a.Held {
		t.Errorf("%+v, %v", a, err)
	}
	odd := ask(t, q, Question{Op: "dance"})
	c.Confirmed(2, QuestionRound|odd.Number)
	if _, err := odd.Answer(); !odd.answered() || err == nil {
		t.Error("an unknown question was answered")
	}
}

func TestAnotherLeadAnswersNothing(t *testing.T) {
	c, q, _ := leading(t)
	one, watch := ask(t, q, Question{Op: OpPeek, Key: "k"}),
		ask(t, q, Question{Op: OpWatch, After: c.Machine().Position()})
	c.Confirmed(2, QuestionRound|watch.Number)
	if watch.answered() || q.Watching() != 1 {
		t.Fatalf("%d watch", q.Watching())
	}
	c.Role(raftlog.Role{Term: 3})
	c.Confirmed(3, QuestionRound|one.Number)
	for _, each := range []*Asked{one, watch} {
		if _, err := each.Answer(); !each.answered() || !errors.Is(err, ErrNoLead) {
			t.Errorf("answered: %v", err)
		}
	}
	if q.Watching() != 0 {
		t.Errorf("%d watch", q.Watching())
	}
}

// TestAWatchWaitsForItsKey checks that a watch is answered at the end of the first turn that has an
// event for its key, or by Idle.
func TestAWatchWaitsForItsKey(t *testing.T) {
	c, q, _ := leading(t)
	question := Question{Op: OpWatch, Key: "k", After: c.Machine().Position()}
	early := ask(t, q, question)
	if _, err := q.Idle(early); !errors.Is(err, ErrBusy) {
		t.Errorf("a watch whose round has not come back: %v", err)
	}
	watch, gone := ask(t, q, question), ask(t, q, question)
	c.Confirmed(2, QuestionRound|watch.Number)
	c.Confirmed(2, QuestionRound|gone.Number)
	c.TurnEnd()
	if a, err := q.Idle(gone); err != nil || a.Leader != 4 || len(a.Events) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	put := lockfsm.Command{Kind: lockfsm.Put, Number: 9, Key: "k", Value: []byte("v"), Nonce: lockfsm.Nonce{1}}
	if err := c.Apply(10, 2, put.Append(nil)); err != nil {
		t.Fatal(err)
	}
	c.TurnEnd()
	if a, err := watch.Answer(); !watch.answered() || err != nil || len(a.Events) != 1 || a.Events[0].Key != "k" {
		t.Errorf("%v: %+v, %v", watch.answered(), a, err)
	}
	if gone.answered() || q.Watching() != 0 {
		t.Errorf("a watch that was given up was answered: %v, %d watch", gone.answered(), q.Watching())
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	_, q, _ := leading(t)
	var all []*Asked
	for range maxQuestions {
		all = append(all, ask(t, q, Question{Op: OpPeek}))
	}
	if _, err := q.Ask(Question{Op: OpPeek}); !errors.Is(err, ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	q.Drop(all[3])
	ask(t, q, Question{Op: OpPeek})
	for range maxWatchers - maxQuestions {
		ask(t, q, Question{Op: OpWatch})
	}
	if _, err := q.Ask(Question{Op: OpWatch}); !errors.Is(err, ErrBusy) {
		t.Errorf("one watch too many: %v", err)
	}
}
