package founding

import (
	"cmp"
	"slices"
)

// Book is the address book: raft ID → (instance, address, life). Only the configuration of the
// group decides which replicas are in the book. Addresses come from charters, from the log, from
// other voters and from each voter itself; the highest life number wins. Gossip never removes an
// entry: a voter that cannot be reached for an hour still votes. The zero Book is empty. It is not
// safe for concurrent use. State carries it into a directory.
type Book struct {
	at      uint64      // of the configuration
	entries []bookEntry // by raft ID
}

type bookEntry struct {
	Voter
	firstHand bool // reported by that instance itself
}

// Configure makes the book hold exactly the replicas of the configuration with this number, unless
// the book already holds this or a newer one. The entry of a replica that was in the book stays
// unchanged, unless the given life is higher.
func (b *Book) Configure(at uint64, voters []Voter) {
	if len(b.entries) > 0 && at <= b.at {
		for _, v := range voters {
			b.Hear(v, false)
		}
		return
	}
	old := b.entries
	b.at = at
	b.entries = make([]bookEntry, 0, len(voters))
	for _, v := range voters {
		b.entries = append(b.entries, bookEntry{Voter: v})
	}
	slices.SortFunc(b.entries, func(x, y bookEntry) int { return cmp.Compare(x.Raft, y.Raft) })
	for _, e := range old {
		b.Hear(e.Voter, e.firstHand)
	}
}

// Hear records a reported address of a voter, and reports whether that changed the book. It ignores
// instances outside the configuration, older lives, and reports of others that contradict the
// voter's own report. It also ignores an instance that claims the raft ID of another one: the
// configuration binds each ID to one instance, and raft messages are accepted on that basis.
func (b *Book) Hear(v Voter, firstHand bool) bool {
	at, found := b.find(v.Raft)
	if !found || v.Addr == "" {
		return false
	}
	e := &b.entries[at]
	if v.Instance != e.Instance || v.Life < e.Life || v.Life > e.Life+lifeJump ||
		(v.Life == e.Life && e.firstHand && !firstHand) {
		return false
	}
	v.Learner = e.Learner // only the configuration decides that
	changed := e.Voter != v
	e.Voter, e.firstHand = v, firstHand
	return changed
}

// At returns the number of the configuration that the book holds. Zero means none.
func (b *Book) At() uint64 { return b.at }

// Find returns the replica with that raft ID, if the book has it.
func (b *Book) Find(raft uint64) (Voter, bool) {
	at, found := b.find(raft)
	if !found {
		return Voter{}, false
	}
	return b.entries[at].Voter, true
}

// Voters returns a copy of the book, by raft ID.
func (b *Book) Voters() []Voter {
	out := make([]Voter, 0, len(b.entries))
	for _, e := range b.entries {
		out = append(out, e.Voter)
	}
	return out
}

func (b *Book) find(raft uint64) (int, bool) {
	return slices.BinarySearchFunc(b.entries, raft,
		func(e bookEntry, raft uint64) int { return cmp.Compare(e.Raft, raft) })
}
