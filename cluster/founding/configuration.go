package founding

import (
	"encoding/binary"
	"slices"
)

// Configuration is a configuration of the group that a replica has applied.
type Configuration struct {
	At       uint64   // number of the configuration; zero means that none was applied
	Voters   []Voter  // all replicas of the configuration, including learners
	Incoming []uint64 // raft IDs of the new half, ascending; empty unless the configuration is joint
	Outgoing []uint64 // raft IDs of the old half, ascending; empty unless the configuration is joint
	told     bool     // Incoming and Outgoing are known
}

func (g *Configuration) names(raft uint64) bool {
	return slices.ContainsFunc(g.Voters, func(v Voter) bool { return v.Raft == raft })
}

// majority reports whether the voters for which meant returns true are a majority. In a joint
// configuration they must be a majority of each half.
func (g *Configuration) majority(meant func(Voter) bool) bool {
	half := func(in func(Voter) bool) bool {
		n, all := 0, 0
		for _, v := range g.Voters {
			if !v.Learner && in(v) {
				all++
				if meant(v) {
					n++
				}
			}
		}
		if !g.told && (all%2 == 0 || all >= 7) {
			// g may be joint with unknown halves; a majority of each half is over a quarter of all
			return 4*n > all
		}
		return 2*n > all
	}
	if len(g.Outgoing) == 0 {
		return half(func(Voter) bool { return true })
	}
	incoming := half(func(v Voter) bool { return slices.Contains(g.Incoming, v.Raft) })
	return incoming && half(func(v Voter) bool { return slices.Contains(g.Outgoing, v.Raft) })
}

func holds(voters []Voter, raft uint64) bool {
	return raft != 0 && slices.ContainsFunc(voters, func(v Voter) bool { return v.Raft == raft })
}

// whole returns a copy of a configuration of which both halves are known.
func (g *Configuration) whole() Configuration {
	return Configuration{
		At: g.At, Voters: slices.Clone(g.Voters), Incoming: sorted(g.Incoming), Outgoing: sorted(g.Outgoing), told: true,
	}
}

// Standing describes the replica of the answering instance. It is a part of InstanceInfo.
type Standing struct {
	Raft uint64 // raft ID of the running replica; zero means none
	// names of the instances of the answer's Voters, in the same order; empty where unknown
	Names   []string
	Applied Configuration
	Log     Log // position of the replica's log, if the replica knows no leader
}

// Log is the position of a replica's log. The zero Log means unknown.
type Log struct {
	Term      uint64 // term of the replica
	LastTerm  uint64 // term of the last entry
	LastIndex uint64
}

// ahead reports whether a voter with the log l always refuses a candidate with the other log. It
// reports false if the candidate's report may be out of date.
func (l Log) ahead(of Log) bool {
	known := l.Term > 0 && of.Term >= l.Term
	return known && (l.LastTerm > of.LastTerm || l.LastTerm == of.LastTerm && l.LastIndex > of.LastIndex)
}

func appendStanding(b []byte, s *Standing) []byte {
	if s == nil {
		return b // the same bytes as from a build that does not know Standing
	}
	b = binary.AppendUvarint(b, s.Raft)
	names := s.Names[:min(len(s.Names), maxVoters)]
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, name := range names {
		b = appendText(b, name)
	}
	b = binary.AppendUvarint(b, s.Applied.At)
	b = appendVoters(b, s.Applied.Voters)
	b = appendIDs(appendIDs(b, s.Applied.Incoming), s.Applied.Outgoing)
	for _, v := range [...]uint64{s.Log.Term, s.Log.LastTerm, s.Log.LastIndex} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func readStanding(r *reader) *Standing {
	if r.bad || len(r.b) == 0 {
		return nil
	}
	s := &Standing{Raft: r.uint()}
	for range r.length(maxVoters, 1) {
		s.Names = append(s.Names, r.text(maxNameBytes))
	}
	s.Applied = Configuration{At: r.upTo(maxAt), Voters: readVoters(r), Incoming: r.ids(maxVoters),
		Outgoing: r.ids(maxVoters)}
	s.Applied.told = s.Applied.At > 0
	s.Log = Log{Term: r.uint(), LastTerm: r.uint(), LastIndex: r.uint()}
	return s
}
