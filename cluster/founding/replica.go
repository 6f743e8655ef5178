package founding

import "slices"

// replica holds the raft IDs of this incarnation. An ID must never be used for a second log, though
// a Prepare may arrive twice.
type replica struct {
	raft   uint64 // present raft ID, from the charter or a Prepare; zero means none
	term   uint64 // term of the newest leader that has prepared this incarnation
	used   []Used // raft IDs whose replicas have ended, oldest first
	usedAt uint64 // highest configuration number of the IDs that were dropped from used
	// raft ID of a removed replica, which runs while its vote may be needed; zero means none
	lingers uint64
	log     Log    // position of the log of replica logOf
	logOf   uint64 // raft ID
}

// Used is a raft ID whose replica has ended, and the number of the newest configuration known at
// that time. No Prepare with that raft ID had a higher number.
type Used struct{ Raft, At uint64 }

func resumeReplica(s *State) replica {
	return replica{raft: s.Raft, term: s.Term, used: slices.Clone(s.Used), usedAt: s.UsedAt, lingers: s.Lingers}
}

// begin gives this incarnation the raft ID of its charter, or 0.
func (r *replica) begin(raft uint64) { r.raft = raft }

// prepare gives this incarnation a new raft ID.
func (r *replica) prepare(raft, term uint64) { r.raft, r.term, r.lingers = raft, term, 0 }

// retire records that a replica has stopped for good, while the newest known configuration has the
// number at. It reports whether the replica was one of this incarnation.
func (r *replica) retire(raft, at uint64) bool {
	switch {
	case raft == 0:
		return false
	case raft == r.raft:
		r.spend(at)
	case raft == r.lingers:
		r.endLingering()
	default:
		return false
	}
	return true
}

// endLingering records that a removed replica no longer runs.
func (r *replica) endLingering() { r.lingers = 0 }

// spend ends the present raft ID, while the newest known configuration has the number at.
func (r *replica) spend(at uint64) {
	raft := r.raft
	r.raft = 0
	if len(r.used) >= maxUsed {
		r.usedAt = max(r.usedAt, r.used[0].At)
		r.used = slices.Delete(r.used, 0, 1)
	}
	r.used = append(r.used, Used{Raft: raft, At: at})
}

// remove ends the present raft ID and returns it. The replica lingers, because other replicas may
// need its vote.
func (r *replica) remove(at uint64) uint64 {
	r.lingers = r.raft
	r.spend(at)
	return r.lingers
}

// meets compares a Prepare with the raft IDs of this incarnation and with the newest known
// configuration. It reports whether a fresh replica may begin, or else the answer.
func (r *replica) meets(p *Prepare, newest []Voter) (state PreparedState, detail string, fresh bool) {
	switch {
	case p.Raft == r.raft:
		return Running, "", false
	case r.spent(p.Raft) || holds(newest, p.Raft):
		return Ended, "", false // if a configuration names the ID, a replica has used it
	case p.At <= r.usedAt:
		return Declined, "it has had so many replicas that it cannot tell whether it has had this one", false
	case holds(newest, r.raft):
		return Declined, "it runs another replica, which the group's configuration names", false
	case p.Term < r.term:
		return Declined, "a later leader has prepared it since", false
	}
	return Running, "", true
}

func (r *replica) spent(raft uint64) bool {
	return slices.ContainsFunc(r.used, func(u Used) bool { return u.Raft == raft })
}

// locate records the position of the log of a replica.
func (r *replica) locate(raft uint64, log Log) { r.logOf, r.log = raft, log }

func (r *replica) ownLog() Log {
	if r.logOf != r.runs() {
		return Log{}
	}
	return r.log
}

func (r *replica) runs() uint64 {
	if r.raft != 0 {
		return r.raft
	}
	return r.lingers
}
