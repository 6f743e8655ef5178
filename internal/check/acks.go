package check

import (
	"cmp"
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Acks judges that every acknowledged operation survives: what a caller was told is in the state of
// every replica that has applied that far, for ever. It belongs to one group. The zero value is
// ready for use.
//
// The index of what is told to it may be any at which the operation is surely committed: that of
// the entry itself, or the highest that any replica had applied when the caller was told.
type Acks struct {
	rule
	keys map[string]*keyed
}

// acked is a grant that a caller was told of, or that has ended, and how it went on.
type acked struct {
	token    lockfsm.Token
	alone    bool
	index    uint64
	released uint64 // the index at which a caller was told that it is released; 0: it was not
	ended    uint64 // the index at which the state ended it; 0: it has not
	how      string
}

// keyed is what is known of one key.
type keyed struct {
	grants []acked // ascending by token, as far back as the last one that was alone; those before it are over
	alone  acked   // that one, as it was when it was told; zero: none
	passed lockfsm.Token
}

// remembered is how many grants of a key are kept that are over: those who only share it would be
// kept for ever.
const remembered = 64

// find returns the grant with that token, or nil.
func (k *keyed) find(token lockfsm.Token) *acked {
	i, found := slices.BinarySearchFunc(k.grants, token,
		func(g acked, t lockfsm.Token) int { return cmp.Compare(g.token, t) })
	if !found {
		return nil
	}
	return &k.grants[i]
}

// add enters a grant, unless it is known, or older than what is kept. What is alone ends all before
// it.
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

// Granted is told that a caller was told that it holds key on these terms.
func (a *Acks) Granted(index uint64, key string, terms Terms, token lockfsm.Token) {
	a.key(key).add(acked{token: token, alone: terms.Alone(), index: index})
}

// Released is told that a caller was told that its release is confirmed.
func (a *Acks) Released(index uint64, key string, token lockfsm.Token) error {
	if g := a.key(key).find(token); g != nil && g.released == 0 {
		g.released = index
		if g.ended == 0 || g.ended > index {
			return a.broken("acks: the release of %q with token %d is confirmed at index %d, and no entry up to there ends it", key, token, index)
		}
	}
	return a.err
}

// Ended is told, from the front of the log (see [Front]), each grant that ends, with the index of
// the entry that ended it.
func (a *Acks) Ended(index uint64, key string, terms Terms, token lockfsm.Token, how string) {
	k := a.key(key)
	switch g := k.find(token); {
	case g == nil: // nobody was told of it yet
		k.add(acked{token: token, alone: terms.Alone(), index: index, ended: index, how: how})
	case g.ended == 0:
		g.ended, g.how = index, how
	}
}

// Replica is told the holders of all keys on a replica that has applied up to an index, and judges
// them.
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
		case applied < g.index: // it cannot know yet
		case over && is:
			_ = a.broken("acks: %s at index %d has %q held with token %d, which was ended (%s) at index %d", who,
				applied, key, g.token, g.how, g.ended)
		// it knows of a later grant, so this one is over there
		case g.alone && len(held) > 0 && slices.Max(held) > g.token:
		case !over && !is:
			_ = a.broken("acks: %s at index %d has %q held with tokens %v and not with %d, which was granted at index %d and has not been ended",
				who, applied, key, held, g.token, g.index)
		}
	}
	for _, token := range held {
		if token < k.alone.token && k.alone.index <= applied {
			_ = a.broken("acks: %s at index %d has %q held with token %d, although token %d was granted alone at index %d",
				who, applied, key, token, k.alone.token, k.alone.index)
		}
	}
}

// Holders makes what Replica judges from the entries of a machine.
func Holders(entries []lockfsm.EntryInfo) map[string][]lockfsm.Token {
	held := map[string][]lockfsm.Token{}
	for _, e := range entries {
		if e.Token != 0 {
			held[e.Key] = append(held[e.Key], e.Token)
		}
	}
	return held
}
