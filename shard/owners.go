package shard

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise"
)

// Owner says which instance owns a shard.
type Owner struct {
	Index    int
	Instance string // mortise.Config.Name of the instance
	Token    mortise.Token
	Since    time.Time // by the wall clock of the group's leader; for display only
}

// Lister is the part of *mortise.Node that Owners uses.
type Lister interface {
	List(ctx context.Context, prefix string) iter.Seq2[mortise.KeyInfo, error]
}

// Owners returns the owners of the shards of a name, by index. A shard that is missing is free. A
// shard that moves during the call may be missing, or listed with its former owner. The errors are
// those of mortise.Node.List.
func Owners(ctx context.Context, node Lister, name string) (owners []Owner, err error) {
	for info, err := range node.List(ctx, name+"/shard/") {
		if err != nil {
			return nil, err
		}
		index, is := indexOf(info.Key, name, maxCount)
		if is && len(info.Queue) > 0 && info.Queue[0].Token != 0 {
			first := info.Queue[0]
			owners = append(owners, Owner{Index: index, Instance: first.Holder, Token: first.Token, Since: first.Since})
		}
	}
	slices.SortFunc(owners, byIndex)
	return owners, nil
}

// Watcher is the part of *mortise.Node that Observe uses.
type Watcher interface {
	Watch(ctx context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error]
}

// Observe yields the present owners of the shards of a name, by index, and then all owners after
// each change. If several changes happen while the body of the loop runs, it yields only the newest
// owners. The caller owns the slices. While the group has no majority, nothing is yielded.
//
// The last pair is nil with an error: the cause of the end of ctx, or the error of the node, such
// as mortise.ErrClosed. A second range over the result begins with the present owners.
func Observe(ctx context.Context, node Watcher, name string) iter.Seq2[[]Owner, error] {
	return func(yield func([]Owner, error) bool) {
		o := observed{name: name, owners: map[int]Owner{}}
		for e, err := range node.Watch(ctx, name+"/shard/", 0) {
			if err != nil {
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				yield(nil, err)
				return
			}
			if o.apply(&e) && !yield(o.list(), nil) {
				return
			}
		}
	}
}

// observed is the owners as far as the events show them.
type observed struct {
	name   string
	owners map[int]Owner
	shown  map[int]mortise.Token // at the last report; nil before the first
}

// apply applies an event. It reports whether the owners have changed since the last report and are
// those of one moment.
func (o *observed) apply(e *mortise.Event) (report bool) {
	index, is := indexOf(e.Key, o.name, maxCount)
	switch {
	case e.Kind == mortise.EventReset:
		clear(o.owners)
	case e.Kind == mortise.EventCurrent:
		now := make(map[int]mortise.Token, len(o.owners))
		for index, owner := range o.owners {
			now[index] = owner.Token
		}
		report = o.shown == nil || !maps.Equal(now, o.shown)
		o.shown = now
	case !is:
	case e.Kind == mortise.EventHeld:
		o.owners[index] = Owner{Index: index, Instance: e.Holder, Token: e.Token, Since: e.At}
	case o.owners[index].Token == e.Token && (e.Kind == mortise.EventFreed || e.Kind == mortise.EventLeft):
		delete(o.owners, index)
	}
	return report
}

func (o *observed) list() []Owner {
	all := slices.Collect(maps.Values(o.owners))
	slices.SortFunc(all, byIndex)
	return all
}

func byIndex(a, b Owner) int { return cmp.Compare(a.Index, b.Index) }
