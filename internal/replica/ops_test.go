package replica

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// ops returns the kinds of questions that question.go declares.
func ops(t *testing.T) (all []Op) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "question.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if kind, is := spec.Type.(*ast.Ident); !is || kind.Name != "Op" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Op(text))
		return true
	})
	return all
}

// TestEachOpHasItsAnswer asks a question of each kind about one state, in which more readers hold a
// key than one answer shows. A new kind without a row fails.
func TestEachOpHasItsAnswer(t *testing.T) {
	const readers = maxPeekQueue + 2
	c, q, _ := leading(t)
	index := uint64(1)
	apply := func(command lockfsm.Command) {
		t.Helper()
		index++
		if err := c.Apply(index, 2, command.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	nonce := lockfsm.Nonce{1}
	apply(lockfsm.Command{Kind: lockfsm.EndGrace})
	apply(lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: 1_800_000_000_000})
	apply(lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce, TTL: time.Second})
	session := c.Machine().Sessions()[0].ID
	apply(lockfsm.Command{Kind: lockfsm.Attach, Session: session, Epoch: 1, Number: 1, Nonce: nonce})
	before := c.Machine().Position()
	for n := range readers {
		apply(lockfsm.Command{Kind: lockfsm.Acquire, Session: session, Epoch: 1, Number: lockfsm.Number(n + 1), Key: "k",
			Mode: lockfsm.ModeS})
	}
	apply(lockfsm.Command{Kind: lockfsm.Put, Number: 1, Key: "data", Value: []byte("v"), Nonce: nonce})
	all, _ := c.Machine().Inspect("k", readers)
	if len(all.Queue) != readers || all.Queue[readers-1].Token == 0 {
		t.Fatalf("%d readers", len(all.Queue))
	}
	held := all.Queue[0].Token
	queue := func(a *Answer) int { return len(a.Locks[0].Queue) }
	here := func(a *Answer) bool { return a.Leader == 4 && a.Position == c.Machine().Position() }
	rows := map[Op]struct {
		question Question
		is       func(a *Answer) bool
	}{
		OpPeek: {Question{Key: "k"}, func(a *Answer) bool { return len(a.Locks) == 1 && queue(a) == maxPeekQueue }},
		OpList: {Question{Key: "k"}, func(a *Answer) bool { return len(a.Locks) == 1 && queue(a) == maxListQueue }},
		OpWalk: {Question{Key: "k"}, func(a *Answer) bool {
			return len(a.Locks) == 1 && queue(a) == maxPeekQueue && here(a)
		}},
		OpHolders: {Question{Key: "k", After: uint64(all.Queue[maxPeekQueue-1].Place)}, func(a *Answer) bool {
			return len(a.Locks) == 1 && queue(a) == 2 && a.Locks[0].Queue[0].Token == all.Queue[maxPeekQueue].Token && here(a)
		}},
		OpCheck:    {Question{Key: "k", Token: uint64(held)}, func(a *Answer) bool { return a.Held }},
		OpGet:      {Question{Key: "data"}, func(a *Answer) bool { return a.Data != nil && string(a.Data.Value) == "v" }},
		OpSessions: {Question{}, func(a *Answer) bool { return len(a.Sessions) == 1 && a.Sessions[0].ID == session }},
		OpMembers:  {Question{}, func(a *Answer) bool { return len(a.Sessions) == 1 && a.Sessions[0].ID == session }},
		OpNames:    {Question{}, func(a *Answer) bool { return len(a.Locks) == 0 && len(a.Sessions) == 0 }},
		// the Evict and the Lead, which stand before it in question.go
		OpEnds: {Question{}, func(a *Answer) bool { return len(a.Events) == 2 }},
		OpEvents: {Question{Prefixes: allKeys, After: before}, func(a *Answer) bool {
			return len(a.Events) == maxEvents && a.More && a.Position > before
		}},
		OpWatch: {Question{Prefixes: allKeys, After: before}, func(a *Answer) bool {
			return len(a.Events) == maxEvents && a.More && a.Position > before
		}},
		OpPut: {Question{Key: "more", Value: []byte("v"), Nonce: lockfsm.Nonce{2}}, func(a *Answer) bool {
			return a.Code == lockfsm.Done && a.Data != nil && string(a.Data.Value) == "v"
		}},
		OpValue: {Question{Key: "k", Token: uint64(held), After: 1, Value: []byte("new")}, func(a *Answer) bool {
			return a.Code == lockfsm.Done
		}},
		OpEnd:     {Question{Session: 42}, func(a *Answer) bool { return a.Code == lockfsm.NoSession && !a.Held }},
		OpLead:    {Question{Key: "n", By: "test", Reason: "test"}, func(a *Answer) bool { return a.Code == lockfsm.Done }},
		OpReserve: {Question{After: 7}, func(a *Answer) bool { return a.First != 0 }},
		OpEvict: {Question{Key: "k", Token: uint64(all.Queue[1].Token), By: "test", Reason: "test"}, func(a *Answer) bool {
			return a.Held
		}},
	}
	if len(ops(t)) != len(rows) {
		t.Errorf("%d kinds of questions, %d rows", len(ops(t)), len(rows))
	}
	for _, op := range ops(t) {
		row, is := rows[op]
		if !is {
			t.Errorf("%s has no row", op)
			continue
		}
		row.question.Op = op
		one := ask(t, q, row.question)
		if e := one.question.Ending(one.Number); op == OpEnd {
			apply(lockfsm.Command{Kind: lockfsm.Expire, Session: e.Session, Number: e.Number, Cause: e.Cause})
		} else if command, changes := one.question.Command(one.Number); changes {
			apply(command)
		} else {
			c.Confirmed(2, QuestionRound|one.Number)
		}
		if !one.answered() {
			t.Errorf("%s is not answered", op)
			continue
		}
		if a, err := one.Answer(); err != nil || !row.is(a) {
			t.Errorf("%s: %v, and the answer is of another kind: %d locks, %d events, %d sessions, %+v", op, err,
				len(a.Locks), len(a.Events), len(a.Sessions), a.Code)
		}
	}
}
