package founding

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Configuration is a configuration of the group that a replica has applied.
type Configuration struct {
	At       uint64   // number of the configuration; zero means that none was applied
	Voters   []Voter  // all replicas of the configuration, including learners
	Incoming []uint64 // raft IDs of the new half, ascending; empty unless the configuration is joint
	Outgoing []uint64 // raft IDs of the old half, ascending; empty unless the configuration is joint
	told     bool     // Incoming and Outgoing are known
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

// Log records the position of the log of this instance's replica. The host calls Log at each change
// of the replica's term or leader. While the replica has a leader, the host passes the zero Log,
// because the leader may append entries.
func (c *Core) Log(now time.Duration, raft uint64, log Log) {
	c.now, c.logOf, c.log = now, raft, log
}

func (c *Core) ownLog() Log {
	if c.logOf != c.runs() {
		return Log{}
	}
	return c.log
}

// ahead reports whether a voter with the log l always refuses a candidate with the other log. It
// reports false if the candidate's report may be out of date.
func (l Log) ahead(of Log) bool {
	known := l.Term > 0 && of.Term >= l.Term
	return known && (l.LastTerm > of.LastTerm || l.LastTerm == of.LastTerm && l.LastIndex > of.LastIndex)
}

// Applied records the configuration that this instance's replica has applied, with both halves if
// the configuration is joint.
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

type fate struct {
	voter Voter
	known time.Duration // answers to questions before this time prove nothing about the replica
	heard time.Duration // when the replica's incarnation last answered
	// the log is in a directory, so another process at the address does not prove that the replica
	// has ended
	durable bool
	over    bool // the replica can never vote again
}

type doubts struct {
	at    uint64 // number of the configuration
	since time.Duration
}

func (c *Core) fateOf(raft uint64) *fate {
	at := slices.IndexFunc(c.fates, func(f *fate) bool { return f.voter.Raft == raft })
	if at < 0 {
		return nil
	}
	return c.fates[at]
}

// follow begins to track the replicas of a configuration. If the name of a replica's instance is
// unknown, follow asks for it while the instance still runs. With Founders, the name can prove
// later that the replica has ended.
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
		c.applied = s.Applied
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

// replaces reports whether an instance with this name proves that replica f has ended. Only one
// process runs under each founder's name.
func (c *Core) replaces(name string, f *fate) bool {
	return name != "" && slices.Contains(c.needed(), name) && name == c.nameOf(f.voter.Instance)
}

// Departed records that an instance has announced its exit, which ends its replica in memory.
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
