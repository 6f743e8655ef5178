package replica

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"
)

// keeps applies the grants of two shared stays, and returns the standing of the second one.
func keeps(t *testing.T, c *Core) lockfsm.Standing {
	t.Helper()
	var session lockfsm.SessionID
	apply := func(index uint64, command lockfsm.Command) {
		t.Helper()
		if err := c.Apply(index, 2, command.Append(nil)); err != nil {
			t.Fatal(err)
		}
		for _, each := range c.Machine().Sessions() {
			session = each.ID
		}
	}
	apply(2, lockfsm.Command{Kind: lockfsm.EndGrace})
	apply(3, lockfsm.Command{Kind: lockfsm.Stamp, WallUnixMS: 1_800_000_000_000})
	index := uint64(4)
	for i := range byte(2) {
		nonce, record := lockfsm.Nonce{1 + i}, fmt.Sprintf(`{"name":"shop-%d"}`, i)
		apply(index, lockfsm.Command{Kind: lockfsm.Open, Nonce: nonce, Record: []byte(record)})
		apply(index+1, lockfsm.Command{Kind: lockfsm.Attach, Session: session, Epoch: 1, Number: 1, Nonce: nonce})
		apply(index+2, lockfsm.Command{Kind: lockfsm.Acquire, Session: session, Epoch: 1,
			Number: 1, Key: "k", Sticky: true, Mode: lockfsm.ModeIS})
		index += 3
	}
	l, ok := c.Machine().Inspect("k", 2)
	if !ok || len(l.Queue) != 2 || l.Queue[1].Last == 0 {
		t.Fatalf("there are no stays: %+v", l)
	}
	return l.Queue[1]
}

// TestOnlyItsInstanceKnowsAboutAReservedToken checks that neither Check nor Evict decides about a
// token that a stay has reserved, and that every other token is decided exactly.
func TestOnlyItsInstanceKnowsAboutAReservedToken(t *testing.T) {
	c, q, _ := leading(t)
	stay := keeps(t, c)
	index := uint64(9)
	decides := func(op Op, token lockfsm.Token) (held bool, err error) {
		t.Helper()
		one := ask(t, q, Question{Op: op, Key: "k", Token: uint64(token)})
		if command, changes := one.question.Command(one.Number); changes {
			index++
			if err := c.Apply(index, 2, command.Append(nil)); err != nil {
				t.Fatal(err)
			}
		} else {
			c.Confirmed(2, QuestionRound|one.Number)
		}
		if !one.answered() {
			t.Fatalf("%s is not answered", op)
		}
		a, err := one.Answer()
		return a.Held, err
	}
	for _, token := range []lockfsm.Token{stay.Token + 1, stay.Last} {
		for op, advice := range map[Op]string{OpCheck: "package fence", OpEvict: "use token"} {
			held, err := decides(op, token)
			if !errors.Is(err, ErrKept) || held {
				t.Fatalf("%s of the reserved token %d: %v, %v", op, token, held, err)
			}
			for _, part := range []string{"shop-1", `"k"`, fmt.Sprint(stay.Token), fmt.Sprint(token), advice} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v does not contain %s", op, err, part)
				}
			}
		}
	}
	for _, token := range []lockfsm.Token{stay.Token - 1, stay.Last + 1} {
		for _, op := range []Op{OpCheck, OpEvict} {
			if held, err := decides(op, token); held || err != nil {
				t.Errorf("%s of token %d, which is not reserved: %v, %v", op, token, held, err)
			}
		}
	}
	for _, op := range []Op{OpCheck, OpEvict} {
		if held, err := decides(op, stay.Token); !held || err != nil {
			t.Errorf("%s of the token of the stay: %v, %v", op, held, err)
		}
	}
	for _, op := range []Op{OpCheck, OpEvict} { // the stay has ended
		if held, err := decides(op, stay.Token+1); held || err != nil {
			t.Errorf("%s of a token that was reserved: %v, %v", op, held, err)
		}
	}
}
