package check

import (
	"cmp"
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Acks checks acknowledged operations in one group. Every replica that has applied such an
// operation must have its result.
//
// The index in its methods may be any index at which the operation is certainly committed: the
// index of its entry, or the highest index that any replica had applied when the caller got the
// result.
type Acks struct {
	rule
	keys map[string]*keyed
}

type acked struct {
	token    lockfsm.Token
	alone    bool
	index    uint64
	released uint64 // the index at which the release was acknowledged; 0 if it was not
	ended    uint64 // the index of the entry that ended the grant; 0 if it has not ended
	how      string
}

type keyed struct {
	grants []acked // ascending by token, from the last exclusive grant on; all earlier grants have ended
	alone  acked   // the last exclusive grant, as first recorded; zero if none
	passed lockfsm.Token
}

// remembered limits the number of recorded grants of a key.
const remembered = 64

func (k *keyed) find(token lockfsm.Token) *acked {
	i, found := slices.BinarySearchFunc(k.grants, token,
		func(g acked, t lockfsm.Token) int { return cmp.Compare(g.token, t) })
	if !found {
		return nil
	}
	return &k.grants[i]
}

func (k *keyed) add(g acked) {
	if g.token <= max(k.alone.token, k.passed) || k.find(g.token) != nil {
		return
	}
	if g.alone {
		k.alone = g
		k.grants = slices.DeleteFunc(k.grants, func(o acked) bool { return o.token < g.token })
	}
	i, _ := slices.BinarySearchFunc(k.grants, g.token,
		func(g acked, t lockfsm.Token) int { return cmp.Compare(g.token, t) })
	k.grants = slices.Insert(k.grants, i, g)
	if len(k.grants) > remembered {
		if over := slices.IndexFunc(k.grants, func(g acked) bool { return g.ended != 0 }); over >= 0 {
			k.passed = max(k.passed, k.grants[over].token)
			k.grants = slices.Delete(k.grants, over, over+1)
		}
	}
}

func (a *Acks) key(key string) *keyed {
	k := a.keys[key]
	if k == nil {
		if a.keys == nil {
			a.keys = map[string]*keyed{}
		}
		k = &keyed{}
		a.keys[key] = k
	}
	return k
}

// Granted records that a call returned with key held on these terms.
func (a *Acks) Granted(index uint64, key string, terms Terms, token lockfsm.Token) {
	a.key(key).add(acked{token: token, alone: terms.Alone(), index: index})
}

// Released records that a release was confirmed to its caller.
func (a *Acks) Released(index uint64, key string, token lockfsm.Token) error {
	if g := a.key(key).find(token); g != nil && g.released == 0 {
		g.released = index
		if g.ended == 0 || g.ended > index {
			return a.broken("acks: the release of %q with token %d is confirmed at index %d, "+
				"and no entry up to there ends it", key, token, index)
		}
	}
	return a.err
}

// Ended records the end of a grant, with the index of the entry that ended it. It must be called
// once for each end, when the first replica applies the entry (see [Front]).
func (a *Acks) Ended(index uint64, key string, terms Terms, token lockfsm.Token, how string) {
	k := a.key(key)
	switch g := k.find(token); {
	case g == nil: // the grant was not acknowledged
		k.add(acked{token: token, alone: terms.Alone(), index: index, ended: index, how: how})
	case g.ended == 0:
		g.ended, g.how = index, how
	}
}

// Replica checks the holders of all keys on a replica that has applied the entries up to an index.
func (a *Acks) Replica(who string, applied uint64, holders map[string][]lockfsm.Token) error {
	if a.err != nil {
		return a.err
	}
	keys := make([]string, 0, len(a.keys))
	for key := range a.keys {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		a.judge(who, applied, key, holders[key])
	}
	return a.err
}

func (a *Acks) judge(who string, applied uint64, key string, held []lockfsm.Token) {
	k := a.keys[key]
	for i := range k.grants {
		g := &k.grants[i]
		is, over := slices.Contains(held, g.token), g.ended != 0 && g.ended <= applied
		switch {
		case applied < g.index:
		case over && is:
			_ = a.broken("acks: %s at index %d has %q held with token %d, which was ended (%s) at index %d", who,
				applied, key, g.token, g.how, g.ended)
		// the replica has a later grant, so this grant has ended there
		case g.alone && len(held) > 0 && slices.Max(held) > g.token:
		case !over && !is:
			_ = a.broken("acks: %s at index %d has %q held with tokens %v and not with %d, "+
				"which was granted at index %d and has not been ended",
				who, applied, key, held, g.token, g.index)
		}
	}
	for _, token := range held {
		if token < k.alone.token && k.alone.index <= applied {
			_ = a.broken("acks: %s at index %d has %q held with token %d, "+
				"although token %d was granted alone at index %d",
				who, applied, key, token, k.alone.token, k.alone.index)
		}
	}
}

// Holders returns the holders of a machine with these entries, in the form that Replica needs.
func Holders(entries []lockfsm.EntryInfo) map[string][]lockfsm.Token {
	held := map[string][]lockfsm.Token{}
	for _, e := range entries {
		if e.Token != 0 {
			held[e.Key] = append(held[e.Key], e.Token)
		}
	}
	return held
}
