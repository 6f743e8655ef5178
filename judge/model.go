package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/mortise-lock/mortise/lockfsm"
)

type kind uint8

const (
	grant kind = iota // the token becomes an owner of the lock
	end               // the token is no longer an owner
	seen              // a try has returned the token of an owner
	lower             // the token's owner takes another share
)

type operation struct {
	kind  kind
	token lockfsm.Token
	share share         // permits of a grant, or after a lowering
	hold  lockfsm.Token // for the grant of an upgrade, the owner that may own the lock beside it
	after lockfsm.Token // for a grant, the next lower token among all grants of the key, or 0
	by    string        // the call or the cause, for messages
}

func (o operation) String() string {
	return fmt.Sprintf("%s %d %s", [...]string{"grant", "end", "seen", "lower"}[o.kind], o.token, o.by)
}

// share is the number of permits that a request takes, and the total that it names. A mutex takes 1
// of 1.
type share struct{ permits, of int64 }

var reader = share{1, math.MaxInt64}

func upgradable() share {
	permits, of := lockfsm.ModeU.Terms()
	return share{int64(permits), int64(of)}
}

// state is the state of the model: the owners of the lock in the order of their tokens, and the
// highest token so far.
type state struct {
	owners  []owner // the slice is never changed
	highest lockfsm.Token
}

type owner struct {
	token lockfsm.Token
	share share
}

// fits reports whether one more request may own the lock together with its present owners. All
// permits together must not exceed the lowest total that any of these requests names. An upgrade
// needs its hold as an owner, and does not count it.
func (s state) fits(more share, hold lockfsm.Token) bool {
	if hold != 0 {
		return len(s.owners) == 1 && s.owners[0] == owner{hold, upgradable()}
	}
	taken, least := more.permits, more.of
	for _, o := range s.owners {
		taken += o.share.permits
		least = min(least, o.share.of)
	}
	return taken <= least || len(s.owners) == 0
}

func (s state) find(token lockfsm.Token) int {
	return slices.IndexFunc(s.owners, func(o owner) bool { return o.token == token })
}

type key struct {
	part
	operations []porcupine.Operation
}

// fencedLock returns the model of locks with tokens. Each key is searched separately. A grant must
// directly follow the grant with the next lower token of the key. For a whole history this is the
// same as the rule that tokens rise, but the search is much faster, because only one grant is
// possible in each state.
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
			at := s.find(o.token)
			switch {
			case o.kind == grant:
				if s.highest != o.after || !s.fits(o.share, o.hold) {
					return false, s
				}
				return true, state{append(s.owners[:len(s.owners):len(s.owners)], owner{o.token, o.share}), o.token}
			case at < 0:
				return false, s
			case o.kind == end:
				return true, state{slices.Delete(slices.Clone(s.owners), at, at+1), s.highest}
			case o.kind == lower:
				owners := slices.Clone(s.owners)
				owners[at].share = o.share
				return true, state{owners, s.highest}
			}
			return true, s
		},
		Equal: func(a, b any) bool {
			return a.(state).highest == b.(state).highest && slices.Equal(a.(state).owners, b.(state).owners)
		},
		Hash: func(s any) uint64 {
			sum := uint64(s.(state).highest)
			for _, o := range s.(state).owners {
				sum = sum*31 + uint64(o.token)
			}
			return sum
		},
		DescribeOperation: func(input, _ any) string { return input.(operation).String() },
		DescribeState: func(s any) string {
			text := ""
			for _, o := range s.(state).owners {
				text += fmt.Sprintf(" %d", o.token)
			}
			if text == "" {
				return "free"
			}
			return "owned by" + text
		},
	}
}
