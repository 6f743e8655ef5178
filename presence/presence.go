package presence

import (
	"context"
	"crypto/rand"
	"iter"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/keep"
)

// Member is one member of a name.
type Member struct {
	ID       string        // of this call of Run; random
	Instance string        // mortise.Config.Name of the instance
	Value    string        // as given to Run
	Token    mortise.Token // rises with every Run, and when a member joins again
	Since    time.Time     // by the wall clock of the group's leader; for display only
}

// Run makes this instance a member of a name, with a value, until ctx ends. It returns the cause of
// ctx, or mortise.ErrLeaving or ErrClosed if the node leaves or is closed, or another error of
// mortise.Node.Acquire that a repetition cannot cure, such as mortise.ErrBadKey.
func Run(ctx context.Context, by keep.Acquirer, name, value string) error {
	r := mortise.Request{Key: prefix(name) + rand.Text(), Value: value}
	return keep.Run(ctx, by, r, keep.Options{}, func(ctx context.Context, _ *mortise.Lock) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

// Lister is the part of *mortise.Node that List uses.
type Lister interface {
	List(ctx context.Context, prefix string) iter.Seq2[mortise.KeyInfo, error]
}

// List returns the present members of a name, the one that joined first at the beginning. A member
// that joins or leaves during the call may be missing or not. The errors are those of
// mortise.Node.List.
func List(ctx context.Context, node Lister, name string) ([]Member, error) {
	s := newSet(name)
	for info, err := range node.List(ctx, s.prefix) {
		if err != nil {
			return nil, err
		}
		if len(info.Queue) > 0 && info.Queue[0].Token != 0 {
			first := info.Queue[0]
			s.add(info.Key, Member{Instance: first.Holder, Value: first.Value, Token: first.Token, Since: first.Since})
		}
	}
	return s.list(), nil
}

// Watcher is the part of *mortise.Node that Observe uses.
type Watcher interface {
	Watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error]
}

// Observe yields the present members of a name, in the order of List, and then all members after
// each change. If several changes happen while the body of the loop runs, it yields only the newest
// members. The caller owns the slices. While the group has no majority, nothing is yielded.
//
// The last pair is nil with an error: the cause of the end of ctx, or the error of the node, such
// as mortise.ErrClosed. A second range over the result begins with the present members.
func Observe(ctx context.Context, node Watcher, name string) iter.Seq2[[]Member, error] {
	return func(yield func([]Member, error) bool) {
		s := newSet(name)
		for e, err := range node.Watch(ctx, s.prefix, 0) {
			if err != nil {
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				yield(nil, err)
				return
			}
			if s.apply(&e) && !yield(s.list(), nil) {
				return
			}
		}
	}
}

func prefix(name string) string { return name + "/" }

func byToken(a, b Member) int {
	if a.Token < b.Token {
		return -1
	}
	return 1
}

func (s *set) list() []Member {
	all := make([]Member, 0, len(s.members))
	for _, m := range s.members {
		all = append(all, m)
	}
	slices.SortFunc(all, byToken)
	return all
}
