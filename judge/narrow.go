package judge

import (
	"cmp"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/mortise-lock/mortise/lockfsm"
)

// This file narrows the times of operations, so that the search of Porcupine has fewer orders to
// try. The judgement stays the same: whenever an order fits into the given times, an order fits
// into the narrow times, too.

// narrow sets the field after of each grant, and narrows the times of the key's operations.
func (k *key) narrow() {
	grants := k.grants()
	k.narrowGrants(grants)
	k.narrowEnds(grants)
}

// grants returns the grants of the key in the order of their tokens.
func (k *key) grants() (all []*porcupine.Operation) {
	for i := range k.operations {
		if k.operations[i].Input.(operation).kind == grant {
			all = append(all, &k.operations[i])
		}
	}
	slices.SortStableFunc(all, func(a, b *porcupine.Operation) int {
		return cmp.Compare(a.Input.(operation).token, b.Input.(operation).token)
	})
	return all
}

// narrowGrants uses that the grants happened in the order of their tokens. None of them happened
// before an earlier grant was possible, or after a later grant was seen.
func (k *key) narrowGrants(grants []*porcupine.Operation) {
	for i, g := range grants[:max(len(grants)-1, 0)] {
		next := grants[i+1]
		in := next.Input.(operation)
		if in.after = g.Input.(operation).token; in.after == in.token { // a token is granted twice
			in.after = g.Input.(operation).after
		}
		next.Input = in
		next.Call = min(max(next.Call, g.Call), next.Return)
	}
	for i := len(grants) - 2; i >= 0; i-- {
		grants[i].Return = max(min(grants[i].Return, grants[i+1].Return), grants[i].Call)
	}
}

// narrowEnds lets each end, and each operation of the kind lower, happen as early as possible:
// after it was possible, after the grant has happened, and an end after all other operations of its
// token have begun and its upgrades are granted. Both make room for grants. An end is in the way
// only of the other operations of its token, and these can then be placed before it. Otherwise the
// search would try all orders of readers that end at the same time.
func (k *key) narrowEnds(grants []*porcupine.Operation) {
	granted, granting := map[lockfsm.Token]int64{}, map[lockfsm.Token]int64{} // the times of each grant
	latest := map[lockfsm.Token]int64{}
	for _, g := range grants {
		token := g.Input.(operation).token
		granted[token], granting[token], latest[token] = g.Call, g.Return, g.Return
	}
	for _, o := range k.operations {
		switch in := o.Input.(operation); {
		case in.kind == seen || in.kind == lower:
			latest[in.token] = max(latest[in.token], o.Call)
		case in.hold != 0: // the grant of an upgrade, which needs its hold and waits for others
			latest[in.hold] = max(latest[in.hold], o.Return)
		}
	}
	for i := range k.operations {
		o := &k.operations[i]
		in := o.Input.(operation)
		if at, known := granted[in.token]; known && in.kind == end {
			o.Call = min(max(o.Call, at), o.Return)
			o.Return = min(o.Return, max(o.Call, latest[in.token]))
		} else if known && in.kind == lower {
			o.Return = min(o.Return, max(o.Call, granting[in.token]))
		}
	}
}
