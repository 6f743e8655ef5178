package check

import "hash/fnv"

type at struct{ group, index uint64 }

// Hashes checks that replicas that have applied the same entries are equal.
type Hashes struct {
	rule
	seen map[at]hashed
}

type hashed struct {
	sum     uint64
	replica string
}

// Applied checks a replica that has applied the log of its group up to index. sum is a hash of its
// state, such as the [Sum] of its snapshot.
func (h *Hashes) Applied(group, index, sum uint64, who string) error {
	if h.err != nil {
		return h.err
	}
	place := at{group, index}
	before, seen := h.seen[place]
	if seen && before.sum != sum {
		return h.broken("hashes: group %x at index %d: the state of %s is %016x, that of %s is %016x", group, index,
			who, sum, before.replica, before.sum)
	}
	if !seen {
		if h.seen == nil {
			h.seen = map[at]hashed{}
		}
		h.seen[place] = hashed{sum, who}
	}
	return nil
}

// Sum returns a hash of b that is equal in every run and on every machine.
func Sum(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}

// Raft checks the guarantees of the raft protocol. It observes the messages that voters send and
// the entries that they commit.
type Raft struct {
	rule
	leaders map[term]uint64
	votes   map[ballot]uint64
	entries map[at]entry
}

type term struct{ group, term uint64 }

type ballot struct{ group, term, voter uint64 }

type entry struct {
	term, sum uint64
	caller    string
}

// Leads records that a raft ID leads in a term, and checks that no other ID does. A message that
// only a leader sends also shows that its sender leads.
func (r *Raft) Leads(group, t, id uint64) error {
	if r.err != nil {
		return r.err
	}
	other, seen := r.leaders[term{group, t}]
	if seen && other != id {
		return r.broken("raft: group %x has two leaders in term %d: %x and %x", group, t, other, id)
	}
	if r.leaders == nil {
		r.leaders = map[term]uint64{}
	}
	r.leaders[term{group, t}] = id
	return nil
}

// Votes records that a raft ID has voted for a candidate, and checks that it has voted for no
// other in that term. A message that grants a vote shows this, and so does a stored hard state. A
// message that grants a pre-vote does not. Candidate 0 means no vote and is ignored.
func (r *Raft) Votes(group, t, voter, candidate uint64) error {
	if r.err != nil || candidate == 0 {
		return r.err
	}
	b := ballot{group, t, voter}
	other, seen := r.votes[b]
	if seen && other != candidate {
		return r.broken("raft: group %x: %x votes in term %d for %x and for %x", group, voter, t, other, candidate)
	}
	if r.votes == nil {
		r.votes = map[ballot]uint64{}
	}
	r.votes[b] = candidate
	return nil
}

// Committed checks an entry that a voter applies. sum is the [Sum] of its data.
func (r *Raft) Committed(group, index, t, sum uint64, who string) error {
	if r.err != nil {
		return r.err
	}
	place := at{group, index}
	before, seen := r.entries[place]
	if seen && (before.term != t || before.sum != sum) {
		return r.broken("raft: group %x at index %d: %s applies an entry of term %d with sum %016x, "+
			"%s one of term %d with sum %016x",
			group, index, who, t, sum, before.caller, before.term, before.sum)
	}
	if !seen {
		if r.entries == nil {
			r.entries = map[at]entry{}
		}
		r.entries[place] = entry{t, sum, who}
	}
	return nil
}

// Progress contains the numbers of a replica that must not decrease.
type Progress struct {
	Term, Commit, Applied, Revision uint64
}

// Rising checks that no number in the Progress of a replica falls, and that no replica has applied
// more than it has committed.
type Rising struct {
	rule
	seen map[string]Progress
}

// Observed checks the progress of the named replica. A restarted replica needs another name,
// unless it kept its disk with the reported numbers.
func (r *Rising) Observed(who string, p Progress) error {
	if r.err != nil {
		return r.err
	}
	old := r.seen[who]
	for _, part := range [...]struct {
		name     string
		was, now uint64
	}{{"term", old.Term, p.Term}, {"commit", old.Commit, p.Commit}, {"applied", old.Applied, p.Applied},
		{"revision", old.Revision, p.Revision}} {
		if part.now < part.was {
			return r.broken("rising: the %s of %s goes back from %d to %d", part.name, who, part.was, part.now)
		}
	}
	if p.Applied > p.Commit {
		return r.broken("rising: %s has applied %d and committed only %d", who, p.Applied, p.Commit)
	}
	if r.seen == nil {
		r.seen = map[string]Progress{}
	}
	r.seen[who] = p
	return nil
}

// Forget removes the named replica. A later replica with the same name may begin with any numbers.
func (r *Rising) Forget(who string) { delete(r.seen, who) }
