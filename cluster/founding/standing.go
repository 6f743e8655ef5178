package founding

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file is what instances tell each other about their replicas, and what is remembered of it:
// which voters are over. It is what the rule in dead.go decides by.

// Configuration is a configuration of the group that a replica has applied.
type Configuration struct {
	At       uint64   // its number; zero means none was applied
	Voters   []Voter  // all its replicas, learners included
	Incoming []uint64 // raft IDs of the majority that it goes to, ascending; empty unless it is joint
	Outgoing []uint64 // those of the majority that it comes from, likewise
	told     bool     // the halves are known
}

// Standing is what an answer says about the replica of the instance that answers.
type Standing struct {
	Raft    uint64        // the replica that runs here and has not retired; zero means none
	Names   []string      // of the voters of Who, in their order; empty where unknown
	Applied Configuration // what that replica has applied
	Log     Log           // how far its log goes, while it knows no leader
}

// Log is how far the log of a replica goes. The zero Log says nothing.
type Log struct {
	Term      uint64 // of the replica
	LastTerm  uint64 // of the last entry
	LastIndex uint64
}

// Log takes how far the log of this instance's replica goes, at each change of its term or leader:
// the zero Log while it has a leader, from which there may come more.
func (c *Core) Log(now time.Duration, raft uint64, log Log) {
	c.now, c.logOf, c.log = now, raft, log
}

// ownLog is how far the log of the replica goes that runs here.
func (c *Core) ownLog() Log {
	if c.logOf != c.runs() {
		return Log{}
	}
	return c.log
}

// ahead reports whether a voter with this log refuses its vote to one with the other for good. The
// term of the other must be no lower: what was said of it is then not from before a leader that has
// added to both.
func (l Log) ahead(of Log) bool {
	known := l.Term > 0 && of.Term >= l.Term
	return known && (l.LastTerm > of.LastTerm || l.LastTerm == of.LastTerm && l.LastIndex > of.LastIndex)
}

// Applied takes the configuration that this instance's replica has applied, with both its halves.
func (c *Core) Applied(now time.Duration, group uint64, applied Configuration) {
	c.now = now
	if c.group != group || c.phase == Newborn || len(applied.Voters) > votersMax {
		return
	}
	applied.Voters = slices.Clone(applied.Voters)
	applied.Incoming, applied.Outgoing = sorted(applied.Incoming), sorted(applied.Outgoing)
	applied.told = true
	c.applied = applied
}

// runs returns the replica of this life that runs: a removed one that goes on still votes.
func (c *Core) runs() uint64 {
	if c.raft != 0 {
		return c.raft
	}
	return c.lingers
}

// standing is what this instance tells others about its replica.
func (c *Core) standing() *Standing {
	s := &Standing{Raft: c.runs()}
	for _, v := range c.voters {
		s.Names = append(s.Names, c.nameOf(v.Instance))
	}
	s.Applied, s.Log = c.applied, c.ownLog()
	return s
}

// fate is what is known of one replica of the group.
type fate struct {
	voter   Voter
	known   time.Duration // answers to questions of before prove nothing about it
	heard   time.Duration // when its life has answered last
	durable bool          // it keeps its log in a directory, so another process at its address says nothing
	over    bool          // it never votes again
}

// doubts say that no voter of a configuration has applied it. The zero value says nothing.
type doubts struct {
	at    uint64        // its number
	since time.Duration // since when that is so without a break
}

// fateOf returns what is known of a replica, or nil if it is new here.
func (c *Core) fateOf(raft uint64) *fate {
	at := slices.IndexFunc(c.fates, func(f *fate) bool { return f.voter.Raft == raft })
	if at < 0 {
		return nil
	}
	return c.fates[at]
}

// follow begins to watch over the replicas of a configuration. Only a member does: before the birth
// a voter may have been asked that had not accepted the charter yet. A replica whose name is not
// known is asked for it while it lives: with Founders the name is what proves later that it is
// over. The members without a replica learn the names from those that have one.
func (c *Core) follow(voters []Voter) {
	for _, v := range voters {
		if f := c.fateOf(v.Raft); f != nil {
			f.voter.Addr = v.Addr
			continue
		}
		if len(c.fates) >= fatesMax {
			c.fates = slices.Delete(c.fates, 0, 1)
		}
		c.fates = append(c.fates, &fate{voter: v, known: c.now})
		if c.runs() != 0 && !c.durable && c.nameOf(v.Instance) == "" {
			c.Inquire(c.now, v.Addr)
		}
	}
}

// attest takes from the answer to a question what it proves about replicas of the group.
func (c *Core) attest(p *place, who *Who, asked time.Duration) {
	c.call(who.Instance, who.Name)
	if s := who.Standing; s != nil && len(s.Names) == len(who.Voters) && (c.phase == Newborn ||
		who.Group == c.group && c.believes(who.Instance)) {
		for i, v := range who.Voters {
			c.call(v.Instance, s.Names[i])
		}
	}
	if c.phase != Member {
		return
	}
	if s := who.Standing; s != nil && who.Group == c.group && c.runs() == 0 && s.Applied.At > c.applied.At &&
		c.believes(who.Instance) {
		c.applied = s.Applied // the newest that is known, with its halves
	}
	for _, f := range c.fates {
		if asked <= f.known {
			continue
		}
		if who.Instance == f.voter.Instance {
			f.heard, f.durable = c.now, who.Durable
			f.over = who.Standing != nil && who.Standing.Raft != f.voter.Raft
			continue
		}
		if p.addr == f.voter.Addr && !f.durable || c.replaces(who.Name, f) {
			f.over = true
		}
	}
}

// replaces reports whether an instance of that name proves that the life of a replica is over: one
// process runs under the name of each founder.
func (c *Core) replaces(name string, f *fate) bool {
	return name != "" && slices.Contains(c.needed(), name) && name == c.nameOf(f.voter.Instance)
}

// Departed takes that an instance has said goodbye: its life, and in memory its replica, are over.
func (c *Core) Departed(now time.Duration, instance nodeid.ID) {
	c.now = now
	for _, f := range c.fates {
		if f.voter.Instance == instance && !f.durable && instance != c.instance {
			f.over = true
		}
	}
}

// called is the name of an instance.
type called struct {
	instance nodeid.ID
	name     string
}

// call notes the name of an instance.
func (c *Core) call(instance nodeid.ID, name string) {
	if name == "" || instance.IsZero() || c.nameOf(instance) != "" {
		return
	}
	if len(c.names) >= calledMax {
		c.names = slices.Delete(c.names, 0, 1)
	}
	c.names = append(c.names, called{instance, name})
}

// nameOf returns the name of an instance, or "" if it is not known here.
func (c *Core) nameOf(instance nodeid.ID) string {
	if instance == c.instance {
		return c.name
	}
	if c.charter != nil {
		if at := c.charter.listed(instance); at >= 0 {
			return c.charter.List[at].Name
		}
	}
	if at := slices.IndexFunc(c.names, func(n called) bool { return n.instance == instance }); at >= 0 {
		return c.names[at].name
	}
	return ""
}

func appendStanding(b []byte, s *Standing) []byte {
	if s == nil {
		return b // as a build answers that knows no standing
	}
	b = binary.AppendUvarint(b, s.Raft)
	names := s.Names[:min(len(s.Names), votersMax)]
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

// standing reads what appendStanding wrote: nil where the message ends before it.
func (r *reader) standing() *Standing {
	if r.bad || len(r.b) == 0 {
		return nil
	}
	s := &Standing{Raft: r.uint()}
	for range r.length(votersMax, 1) {
		s.Names = append(s.Names, r.text(nameBytesMax))
	}
	s.Applied = Configuration{At: r.upTo(atMax), Voters: r.voters(), Incoming: r.ids(votersMax),
		Outgoing: r.ids(votersMax)}
	s.Applied.told = s.Applied.At > 0
	s.Log = Log{Term: r.uint(), LastTerm: r.uint(), LastIndex: r.uint()}
	return s
}
