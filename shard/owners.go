package shard

import (
	"cmp"
	"context"
	"iter"
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
	p := newPlan(name, maxCount, 0, "")
	for info, err := range node.List(ctx, name+"/shard/") {
		if err != nil {
			return nil, err
		}
		index, is := p.index(info.Key)
		if is && len(info.Queue) > 0 && info.Queue[0].Token != 0 {
			first := info.Queue[0]
			owners = append(owners, Owner{Index: index, Instance: first.Holder, Token: first.Token, Since: first.Since})
		}
	}
	slices.SortFunc(owners, func(a, b Owner) int { return cmp.Compare(a.Index, b.Index) })
	return owners, nil
}
