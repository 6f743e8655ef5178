package judge

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/mortise-lock/mortise/lockfsm"
)

// kind is what an operation does.
type kind uint8

const (
	grant kind = iota // the lock gets an owner
	end               // it has none any more
	seen              // a try was told of the owner
)

// operation is the input of one operation of the model.
type operation struct {
	kind  kind
	token lockfsm.Token
	after lockfsm.Token // of a grant: the next lower token that the key was ever granted with, 0 if there is none
	by    string        // what ended it, or who saw it: for people
}

func (o operation) String() string {
	return fmt.Sprintf("%s %d %s", [...]string{"grant", "end", "seen"}[o.kind], o.token, o.by)
}

// state of the model: the owner's token, 0 if there is none, and the highest so far.
type state struct{ owner, highest lockfsm.Token }

// key is all that happened to one key.
type key struct {
	name       string
	operations []porcupine.Operation
}

// fencedLock is the model of locks with tokens, each key by itself. That tokens rise is said as: each comes right behind the next lower
// one. Over a whole history the two are the same, since every grant has its place in the order; but of two possible grants the search
// then tries one, where else it would try every subset of the grants whose times nobody knows well.
func fencedLock(keys []*key) porcupine.Model {
	return porcupine.Model{
		Partition: func([]porcupine.Operation) [][]porcupine.Operation {
			var parts [][]porcupine.Operation
			for _, k := range keys {
				parts = append(parts, k.operations)
			}
			return parts
		},
		Init: func() any { return state{} },
		Step: func(was, input, _ any) (bool, any) {
			s, o := was.(state), input.(operation)
			switch o.kind {
			case grant:
				return s.owner == 0 && s.highest == o.after, state{o.token, o.token}
			case end:
				return s.owner == o.token, state{0, s.highest}
			}
			return s.owner == o.token, s
		},
		Hash:              func(s any) uint64 { return uint64(s.(state).owner)*31 + uint64(s.(state).highest) },
		DescribeOperation: func(input, _ any) string { return input.(operation).String() },
		DescribeState: func(s any) string {
			if s.(state).owner == 0 {
				return "free"
			}
			return fmt.Sprintf("owned by %d", s.(state).owner)
		},
	}
}
