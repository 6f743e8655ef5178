package founding

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file is what instances tell each other about their replicas, and what is recorded of it:
// which voters are over, for dead.go.

// Configuration is a configuration of the group that a replica has applied.
type Configuration struct {
	At       uint64   // its number; zero means none was applied
	Voters   []Voter  // all its replicas, learners included
	Incoming []uint64 // raft IDs of the new majority, ascending; empty unless it is joint
	Outgoing []uint64 // raft IDs of the old majority, likewise
	told     bool     // the halves are known
}

// Standing is what an answer says about the replica of the answering instance.
type Standing struct {
	Raft    uint64        // the replica that runs there and has not retired. Zero means none
	Names   []string      // of the answer's Voters, in their order; empty where unknown
	Applied Configuration // what that replica has applied
	Log     Log           // how far its log goes, if it knows no leader
}

// Log is how far the log of a replica goes. The zero Log means unknown.
type Log struct {
	Term      uint64 // of the replica
	LastTerm  uint64 // of the last entry
	LastIndex uint64
}

// Log records how far the log of this instance's replica goes, at each change of its term or
// leader. While it has a leader, which may append more, the caller passes the zero Log.
func (c *Core) Log(now time.Duration, raft uint64, log Log) {
	c.now, c.logOf, c.log = now, raft, log
}

func (c *Core) ownLog() Log {
	if c.logOf != c.runs() {
		return Log{}
	}
	return c.log
}

// ahead reports whether a voter with this log will always refuse its vote to one with the other
// log. The other's term must be no lower; otherwise its log may have been reported before a leader
// that has appended to both.
func (l Log) ahead(of Log) bool {
	known := l.Term > 0 && of.Term >= l.Term
	return known && (l.LastTerm > of.LastTerm || l.LastTerm == of.LastTerm && l.LastIndex > of.LastIndex)
}

// Applied records the configuration that this instance's replica has applied, with both halves.
func (c *Core) Applied(now time.Duration, group uint64, applied Configuration) {
	c.now = now
	if c.group != group || c.phase == Newborn || len(applied.Voters) > maxVoters {
		return
	}
	applied.Voters = slices.Clone(applied.Voters)
	applied.Incoming, applied.Outgoing = sorted(applied.Incoming), sorted(applied.Outgoing)
	applied.told = true
	c.applied = applied
}

// runs returns the running replica of this life. A removed one that still runs can still vote.
func (c *Core) runs() uint64 {
	if c.raft != 0 {
		return c.raft
	}
	return c.lingers
}

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
	known   time.Duration // answers to questions asked before it prove nothing about the replica
	heard   time.Duration // when its life last answered
	durable bool          // a directory has its log, so a process at its address proves nothing
	over    bool          // it never votes again
}

// doubts record that no voter of a configuration has applied it. The zero value records nothing.
type doubts struct {
	at    uint64        // its number
	since time.Duration // since when this holds without a break
}

func (c *Core) fateOf(raft uint64) *fate {
	at := slices.IndexFunc(c.fates, func(f *fate) bool { return f.voter.Raft == raft })
	if at < 0 {
		return nil
	}
	return c.fates[at]
}

// follow begins to track the replicas of a configuration. Only a member does so: before the group
// is born a voter may not have accepted the charter yet. If the name of a replica is unknown, its
// instance is asked while it lives: with Founders the name proves later that the replica is over.
// Members without a replica learn the names from those that have one.
func (c *Core) follow(voters []Voter) {
	for _, v := range voters {
		if f := c.fateOf(v.Raft); f != nil {
			f.voter.Addr = v.Addr
			continue
		}
		if len(c.fates) >= maxFates {
			c.fates = slices.Delete(c.fates, 0, 1)
		}
		c.fates = append(c.fates, &fate{voter: v, known: c.now})
		if c.runs() != 0 && !c.durable && c.nameOf(v.Instance) == "" {
			c.Inquire(c.now, v.Addr)
		}
	}
}

// attest records what an answer proves about replicas of the group.
func (c *Core) attest(p *place, who *InstanceInfo, asked time.Duration) {
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
		c.applied = s.Applied // the newest known, with its halves
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

// replaces reports whether an instance of that name proves that a replica is over, since one
// process runs under each founder's name.
func (c *Core) replaces(name string, f *fate) bool {
	return name != "" && slices.Contains(c.needed(), name) && name == c.nameOf(f.voter.Instance)
}

// Departed records that an instance has said goodbye. Its life is over, and so is its replica in
// memory.
func (c *Core) Departed(now time.Duration, instance nodeid.ID) {
	c.now = now
	for _, f := range c.fates {
		if f.voter.Instance == instance && !f.durable && instance != c.instance {
			f.over = true
		}
	}
}

type called struct {
	instance nodeid.ID
	name     string
}

func (c *Core) call(instance nodeid.ID, name string) {
	if name == "" || instance.IsZero() || c.nameOf(instance) != "" {
		return
	}
	if len(c.names) >= maxCalled {
		c.names = slices.Delete(c.names, 0, 1)
	}
	c.names = append(c.names, called{instance, name})
}

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
		return b // like the answer of a build without standings
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

// standing decodes what appendStanding wrote, or returns nil if the message ends before it.
func (r *reader) standing() *Standing {
	if r.bad || len(r.b) == 0 {
		return nil
	}
	s := &Standing{Raft: r.uint()}
	for range r.length(maxVoters, 1) {
		s.Names = append(s.Names, r.text(maxNameBytes))
	}
	s.Applied = Configuration{At: r.upTo(maxAt), Voters: r.voters(), Incoming: r.ids(maxVoters),
		Outgoing: r.ids(maxVoters)}
	s.Applied.told = s.Applied.At > 0
	s.Log = Log{Term: r.uint(), LastTerm: r.uint(), LastIndex: r.uint()}
	return s
}
