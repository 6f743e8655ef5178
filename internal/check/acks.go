package check

import (
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Acks judges that every acknowledged operation survives: what a caller was told is in the state of every replica that has applied
// that far, for ever. It belongs to one group. The zero value is ready for use.
//
// The index of what is told to it may be any at which the operation is surely committed: that of the entry itself, or the highest that
// any replica had applied when the caller was told.
type Acks struct {
	rule
	keys map[string]*acked
}

// acked is the newest grant of a key that a caller was told of, and how it went on.
type acked struct {
	token    lockfsm.Token
	index    uint64
	released uint64 // the index at which a caller was told that it is released; 0: it was not
	ended    uint64 // the index at which the state ended it; 0: it has not
	how      string
}

func (a *Acks) key(key string) *acked {
	k := a.keys[key]
	if k == nil {
		if a.keys == nil {
			a.keys = map[string]*acked{}
		}
		k = &acked{}
		a.keys[key] = k
	}
	return k
}

// Granted is told that a caller was told that it holds key.
func (a *Acks) Granted(index uint64, key string, token lockfsm.Token) {
	if k := a.key(key); token > k.token {
		*k = acked{token: token, index: index}
	}
}

// Released is told that a caller was told that its release is confirmed.
func (a *Acks) Released(index uint64, key string, token lockfsm.Token) error {
	k := a.key(key)
	if token == k.token && k.released == 0 {
		k.released = index
		if k.ended == 0 || k.ended > index {
			return a.broken("acks: the release of %q with token %d is confirmed at index %d, and no entry up to there ends it", key, token, index)
		}
	}
	return a.err
}

// Ended is told, from the front of the log (see [Front]), each grant that ends, with the index of the entry that ended it.
func (a *Acks) Ended(index uint64, key string, token lockfsm.Token, how string) {
	k := a.key(key)
	switch {
	case token > k.token: // nobody was told of it yet
		*k = acked{token: token, index: index, ended: index, how: how}
	case token == k.token && k.ended == 0:
		k.ended, k.how = index, how
	}
}

// Replica is told the holders of all keys on a replica that has applied up to an index, and judges them.
func (a *Acks) Replica(who string, applied uint64, holders map[string]lockfsm.Token) error {
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

func (a *Acks) judge(who string, applied uint64, key string, is lockfsm.Token) {
	k := a.keys[key]
	over := k.ended != 0 && k.ended <= applied
	switch {
	case applied < k.index || is > k.token:
		return // it cannot know yet; or it knows of a later grant, so this one is over there
	case over && is == k.token:
		_ = a.broken("acks: %s at index %d has %q held with token %d, which was ended (%s) at index %d", who, applied, key, is, k.how, k.ended)
	case !over && is == 0:
		_ = a.broken("acks: %s at index %d has nobody hold %q, which was granted with token %d at index %d and has not been ended",
			who, applied, key, k.token, k.index)
	case !over && is < k.token || over && is != 0:
		_ = a.broken("acks: %s at index %d has %q held with token %d, although token %d was granted at index %d", who, applied, key, is, k.token, k.index)
	}
}

// Holders makes what Replica judges from the entries of a machine.
func Holders(entries []lockfsm.EntryInfo) map[string]lockfsm.Token {
	held := map[string]lockfsm.Token{}
	for _, e := range entries {
		if e.Token != 0 {
			held[e.Key] = e.Token
		}
	}
	return held
}
