package replica

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"
)

// keeps applies the grant of a stay, and returns the standing of the stay.
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
	apply(4, lockfsm.Command{Kind: lockfsm.Open, Nonce: lockfsm.Nonce{1}, Record: []byte(`{"name":"shop-1"}`)})
	apply(5, lockfsm.Command{Kind: lockfsm.Attach, Session: session, Epoch: 1, Number: 1, Nonce: lockfsm.Nonce{1}})
	apply(6, lockfsm.Command{Rules: lockfsm.StickySince, Kind: lockfsm.Acquire, Session: session, Epoch: 1, Number: 1,
		Key: "k", Sticky: true})
	l, ok := c.Machine().Inspect("k", 1)
	if !ok || l.Queue[0].Last == 0 {
		t.Fatalf("there is no stay: %+v", l)
	}
	return l.Queue[0]
}

// TestOnlyItsInstanceKnowsAboutAReservedToken checks that neither Check nor Evict decides about a
// token that a stay has reserved, and that every other token is decided exactly.
func TestOnlyItsInstanceKnowsAboutAReservedToken(t *testing.T) {
	c, q, _ := leading(t)
	stay := keeps(t, c)
	index := uint64(6)
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
