package founding

import (
	"cmp"
	"slices"
)

// Book maps the raft IDs of the group's configuration to the instance, address and life of each
// replica. If the reports about a replica differ, it keeps the address with the highest life.
// Only the configuration decides which replicas are in the book; gossip never removes an entry.
// The zero Book is empty. A Book is not safe for concurrent use.
type Book struct {
	at      uint64
	entries []bookEntry // in ascending order of raft ID
}

type bookEntry struct {
	Voter
	firstHand bool // the instance itself has reported its address
}

// Configure makes the book hold exactly the replicas of the given configuration. If the book
// already holds that configuration or a newer one, Configure only updates addresses, as Hear
// does. A replica that was in the book keeps its entry, unless the given life is higher.
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

// Hear records a reported address of a voter, and reports whether the book changed. Hear ignores a
// report about a replica outside the configuration, with an older or an implausibly high
// incarnation number, and a report by another instance that contradicts the voter's own report. It
// also ignores a report that gives the raft ID to another instance, because only the configuration
// decides which instance has a raft ID.
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
	v = Voter{Raft: v.Raft, Instance: v.Instance, Addr: v.Addr, Life: v.Life, Learner: e.Learner}
	changed := e.Voter != v
	e.Voter, e.firstHand = v, firstHand
	return changed
}

// At returns the number of the configuration in the book, or zero if the book is empty.
func (b *Book) At() uint64 { return b.at }

// Find returns the replica with the given raft ID, if the replica is in the book.
func (b *Book) Find(raft uint64) (Voter, bool) {
	at, found := b.find(raft)
	if !found {
		return Voter{}, false
	}
	return b.entries[at].Voter, true
}

// Voters returns a copy of the entries in ascending order of raft ID.
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
