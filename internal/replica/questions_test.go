package replica

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session"
)

var allKeys = lockfsm.NewPrefixes("")

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
		ask(t, q, Question{Op: OpWatch, Prefixes: allKeys, After: c.Machine().Position()})
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
	question := Question{Op: OpWatch, Prefixes: lockfsm.NewPrefixes("k"), After: c.Machine().Position()}
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

// Each kind has its own places. A derived secret leaves places to another one, both leave some to
// instances with the root secret, and Drop gives each place back, also if it is called twice.
func TestQuestionsAreBounded(t *testing.T) {
	for _, op := range []Op{OpPeek, OpEvents, OpPut, OpEvict, OpWatch} {
		_, q, _ := leading(t)
		var taken []*Asked
		fill := func(secret string) (sum int, why error) {
			for n := byte(1); n < 255; n++ {
				for each := 0; each < 64; each++ {
					user := fair.Identity{Instance: nodeid.ID{n, byte(len(secret))}, Secret: secret}
					one, err := q.Ask(Question{Op: op, Prefixes: allKeys, For: user})
					if err != nil {
						return sum, err
					}
					taken = append(taken, one)
					sum++
				}
			}
			return sum, nil
		}
		for range 3 {
			one, why := fill("one")
			if !errors.Is(why, ErrBusy) || !strings.Contains(why.Error(), "one derived secret: at most") ||
				strings.Contains(why.Error(), "watches have reached") != (op == OpWatch) {
				t.Errorf("%s: %v", op, why)
			}
			two, _ := fill("other")
			root, _ := fill("")
			if limits := q.placesOf(&Question{Op: op}); one < 64 || two < 32 || root < 32 || limits.Total() != one+two+root {
				t.Errorf("%s: %d and %d of derived secrets, %d of the root secret", op, one, two, root)
			}
			for _, each := range taken {
				q.Drop(each)
				q.Drop(each)
			}
			taken = nil
			if n := q.asking.Total() + q.waiters.Total(); n != 0 || len(q.waiting) != 0 {
				t.Fatalf("%s: %d places and %d questions are left", op, n, len(q.waiting))
			}
		}
	}
}

// TestAWatchFarBehindGoesOn checks that a watch with too many events of other keys before its own
// is answered at once, so that its asker asks on, and does not wait for a further change.
func TestAWatchFarBehindGoesOn(t *testing.T) {
	c, q, _ := leading(t)
	at := c.Machine().Position()
	for n := range 6000 {
		key := "other"
		if n == 5999 {
			key = "k"
		}
		put := lockfsm.Command{Kind: lockfsm.Put, Number: lockfsm.Number(n + 1), Key: fmt.Sprint(key, n), Value: []byte("v"),
			Nonce: lockfsm.Nonce{1, byte(n), byte(n >> 8)}}
		if err := c.Apply(uint64(10+n), 2, put.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	for parts := 1; ; parts++ {
		watch := ask(t, q, Question{Op: OpWatch, Prefixes: lockfsm.NewPrefixes("k"), After: at})
		c.Confirmed(2, QuestionRound|watch.Number)
		a, err := watch.Answer()
		if !watch.answered() || err != nil || parts > 10 || a.Position <= at {
			t.Fatalf("part %d, after %d: answered %v: %+v, %v", parts, at, watch.answered(), a, err)
		}
		q.Drop(watch)
		if at = a.Position; len(a.Events) == 1 && !a.More {
			return
		}
	}
}

// A watch of a thousand instances is within the limits, also if all have one derived secret.
func TestAThousandInstancesWatch(t *testing.T) {
	for _, secret := range []string{"", "member"} {
		_, q, _ := leading(t)
		for n := range 1500 {
			ask(t, q, Question{Op: OpWatch, Prefixes: allKeys,
				For: fair.Identity{Instance: nodeid.ID{byte(n), byte(n >> 8), 1}, Secret: secret}})
		}
	}
}

// OpEvents waits for nothing.
func TestEventsAtOnce(t *testing.T) {
	c, q, _ := leading(t)
	one := ask(t, q, Question{Op: OpEvents, Prefixes: allKeys, After: c.Machine().Position()})
	c.Confirmed(2, QuestionRound|one.Number)
	if a, err := one.Answer(); !one.answered() || err != nil || a.Missed || a.Position != c.Machine().Position() ||
		q.Watching() != 0 {
		t.Errorf("%v: %+v, %v", one.answered(), a, err)
	}
}

// TestEachResultOfAChangeIsTold answers a change of each kind with each code, and compares the
// whole answer. A code that its asker does not expect is an error.
func TestEachResultOfAChangeIsTold(t *testing.T) {
	rights, err := capability.For("cron", "lock jobs/*")
	if err != nil {
		t.Fatal(err)
	}
	passed := []lockfsm.Code{lockfsm.Done, lockfsm.Finished, lockfsm.Changed, lockfsm.TooMuchData, lockfsm.BadKey,
		lockfsm.OverGroupBudget, lockfsm.OverSessionBudget, lockfsm.NotHeld}
	data := &lockfsm.Data{Value: []byte("d"), Revision: 5}
	for _, op := range []Op{OpEvict, OpEnd, OpPut, OpValue, OpReserve} {
		for code := range lockfsm.Code(64) {
			if code == lockfsm.Kept {
				continue // see TestOnlyItsInstanceKnowsAboutAReservedToken
			}
			c, q, _ := leading(t)
			one := ask(t, q, Question{Op: op, Key: "k", Rights: rights})
			result := lockfsm.Result{Kind: one.question.answeredBy(), Number: lockfsm.Number(one.Number), Code: code,
				Data: data, Budget: 6, Token: 7}
			other := result
			other.Number++
			q.changed(&other, c.Machine())
			if one.answered() {
				t.Fatal("the result of another change answers the question")
			}
			q.changed(&result, c.Machine())
			q.changed(&result, c.Machine())
			a, err := one.Answer()
			want := Answer{Data: data, Code: code, Budget: 6, First: 7, Held: code == lockfsm.Done}
			if !one.answered() || !reflect.DeepEqual(*a, want) {
				t.Errorf("%s, %v: %+v, want %+v", op, code, a, want)
			}
			denied, isDenied := errors.AsType[*session.NotAllowedError](err)
			isPassed := slices.Contains(passed, code) || code == lockfsm.Unsupported && op != OpEvict ||
				code == lockfsm.NoSession && op == OpEnd
			if (err == nil) != isPassed || isDenied != (code == lockfsm.NotForced) ||
				isDenied && *denied != (session.NotAllowedError{Verb: "force", For: "cron"}) {
				t.Errorf("%s, %v: %v", op, code, err)
			}
		}
	}
}

// TestCommandsOfAnEarlierRunAnswerNothing lets the result of a change of each kind come to a
// question of each kind with the same number. A replica that starts again may apply a change that
// its earlier run has proposed. Only a result of the question's own kind answers it, or else a
// round.
func TestCommandsOfAnEarlierRunAnswerNothing(t *testing.T) {
	all := []Op{OpPeek, OpCheck, OpGet, OpSessions, OpMembers, OpNames, OpEnds, OpWalk, OpEvict, OpLead, OpEnd, OpPut,
		OpValue, OpReserve}
	for _, earlier := range all {
		by := (&Question{Op: earlier}).answeredBy()
		for _, op := range all {
			c, q, _ := leading(t)
			one := ask(t, q, Question{Op: op, Key: "k"})
			if own := one.question.answeredBy(); by == 0 {
				c.Confirmed(2, QuestionRound|one.Number)
				if one.answered() != (own == 0) {
					t.Errorf("a round answers %s: %v", op, one.answered())
				}
			} else {
				c.answer(&lockfsm.Result{Kind: by, Number: lockfsm.Number(one.Number), Code: lockfsm.Done})
				if one.answered() != (own == by) {
					t.Errorf("a result of %s answers %s: %v", earlier, op, one.answered())
				}
			}
			q.Drop(one)
		}
	}
}

// TestNumbersOfTwoRunsDiffer checks that the numbers of a replica's questions begin where its start
// says, and not where those of its earlier run began.
func TestNumbersOfTwoRunsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for _, first := range []uint64{0, 1 << 20, 1 << 40, 1<<64 - 1} {
		q := NewCore(CoreConfig{Group: 1, ID: 4, Questions: first}).Questions
		for range 100 {
			one := ask(t, q, Question{Op: OpCheck})
			if seen[one.Number] || one.Number&QuestionRound != 0 {
				t.Fatalf("from %x on, a question has the number %x", first, one.Number)
			}
			seen[one.Number] = true
			q.Drop(one)
		}
	}
}
