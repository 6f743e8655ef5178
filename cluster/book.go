package cluster

import (
	"cmp"
	"slices"

	"github.com/mortise-lock/mortise/cluster/birth"
)

// Voter is one voter of the group, with the address under which its newest life was last known.
type Voter = birth.Voter

// book is the address book: raft ID → (instance, address, life). Who is in it is decided by the configuration of the group alone; where
// they are is learned from charters, answers and gossip, and the highest life number wins. Nobody is dropped because gossip says that
// he is dead: a voter that cannot be reached for an hour still votes. The owner goroutine owns
// it; with Records, birth's State carries it into the record "book".
type book struct {
	entries []entry // by raft ID
}

type entry struct {
	Voter
	firstHand bool // said by that very instance, not about it
}

// configure makes the book hold exactly these voters. What is known about those who stay is kept, unless the given life is higher.
func (b *book) configure(voters []Voter) {
	old := b.entries
	b.entries = make([]entry, 0, len(voters))
	for _, v := range voters {
		b.entries = append(b.entries, entry{Voter: v})
	}
	slices.SortFunc(b.entries, func(x, y entry) int { return cmp.Compare(x.Raft, y.Raft) })
	for _, e := range old {
		b.hear(e.Voter, e.firstHand)
	}
}

// hear takes in where somebody says that a voter is, and reports whether that changed the book. Somebody who is not in the
// configuration, an older life, and hearsay against the voter's own word change nothing. Nor does another instance that claims a raft
// ID, in whatever life: an ID has one life of its data, the configuration has named whose, and raft's messages are believed by it.
func (b *book) hear(v Voter, firstHand bool) bool {
	at, found := slices.BinarySearchFunc(b.entries, v.Raft, func(e entry, raft uint64) int { return cmp.Compare(e.Raft, raft) })
	if !found || v.Addr == "" {
		return false
	}
	e := &b.entries[at]
	if v.Instance != e.Instance || v.Life < e.Life || (v.Life == e.Life && e.firstHand && !firstHand) {
		return false
	}
	changed := e.Voter != v
	e.Voter, e.firstHand = v, firstHand
	return changed
}

// voters returns a copy of the book, by raft ID.
func (b *book) voters() []Voter {
	out := make([]Voter, 0, len(b.entries))
	for _, e := range b.entries {
		out = append(out, e.Voter)
	}
	return out
}
