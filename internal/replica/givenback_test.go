package replica

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog"
)

// The place of a question counts until its asker calls Drop, and no longer, whatever has become of
// the question: it waits for its round, it is answered, it waits for an event, or its leader has
// changed.
func TestQuestionPlacesAreGivenBack(t *testing.T) {
	for op, limit := range map[Op]int{OpPeek: questionLimits().Each, OpWatch: watchLimits().Each} {
		c, q, _ := leading(t)
		number := lockfsm.Number(0)
		open := func(then func(one *Asked)) func() (func(), error) {
			return func() (func(), error) {
				one, err := q.Ask(Question{Op: op, Key: "k", Prefixes: allKeys, After: c.Machine().Position(),
					For: fair.Identity{Instance: nodeid.ID{1}}})
				if err != nil {
					return nil, err
				}
				then(one)
				return func() {
					q.Drop(one)
					c.TurnEnd()
				}, nil
			}
		}
		confirmed := func(one *Asked) { c.Confirmed(2, QuestionRound|one.Number) }
		limits.GivenBack(t, limits.Places{Limit: limit, Used: q.placesOf(&Question{Op: op}).Total,
			Endings: map[string]func() (func(), error){
				"dropped before their round": open(func(*Asked) {}),
				"confirmed":                  open(confirmed),
				"left without an event": open(func(one *Asked) {
					confirmed(one)
					_, _ = q.Idle(one)
				}),
				"told of an event": open(func(one *Asked) {
					confirmed(one)
					number++
					put := lockfsm.Command{Kind: lockfsm.Put, Number: number, Key: "k", Value: []byte("v"),
						Nonce: lockfsm.Nonce{byte(number), byte(number >> 8), 1}}
					if err := c.Apply(uint64(number)+10, 2, put.Append(nil)); err != nil {
						t.Fatal(err)
					}
					c.TurnEnd()
				}),
				"ended by another leader": open(func(one *Asked) {
					c.Role(raftlog.Role{Term: 2})
					c.Role(raftlog.Role{Term: 2, Leader: 4, Leading: true})
				}),
			}})
		if len(q.waiting) != 0 || q.Watching() != 0 {
			t.Errorf("%s: %d questions and %d watches are left", op, len(q.waiting), q.Watching())
		}
	}
}
