package lockfsm

import (
	"bytes"
	"fmt"
)

// group is the state of the group itself: what a snapshot has before the sessions, and the reason
// of a failure.
type group struct {
	charter   Charter
	supported uint32 // the newest version of the rules that this build has
	born      bool
	graceOver bool

	rev        Revision // the last revision taken
	wallUnixMS int64    // the largest wall stamp applied; at first the founding time

	failed error
}

func groupOf(c Charter, supported uint32) (group, error) {
	if err := c.validate(supported); err != nil {
		return group{}, err
	}
	c.Settings = copied(c.Settings)
	return group{charter: c, supported: supported, rev: c.firstRevision(), wallUnixMS: c.FoundedUnixMS}, nil
}

// restored sets what a snapshot has of a group, besides the charter.
func (g *group) restored(born, graceOver bool, rev Revision, wallUnixMS int64) {
	g.born, g.graceOver, g.rev, g.wallUnixMS = born, graceOver, rev, wallUnixMS
}

// stamp keeps the largest wall stamp, because a new leader's clock may be behind.
func (g *group) stamp(c *view) Code {
	if c.wallUnixMS > g.wallUnixMS {
		g.bump()
		g.wallUnixMS = c.wallUnixMS
	}
	return Done
}

func (g *group) applyBorn() Code {
	if !g.born {
		g.bump()
		g.born = true
		g.graceOver = g.charter.Grace == 0
	}
	return Done
}

// passGrace ends the grace, and reports whether it was not over yet.
func (g *group) passGrace() bool {
	if g.graceOver {
		return false
	}
	g.bump()
	g.graceOver = true
	return true
}

// guardRevisions makes the group fail before the revisions are used up.
func (g *group) guardRevisions(index uint64) {
	if g.rev > maxRevision-revisionReserve && g.failed == nil {
		g.failed = fmt.Errorf("%w at entry %d: recover the group under a new charter", ErrRevisions, index)
	}
}

// raise raises the rules version. A machine that does not have the new version fails, because its
// state would diverge.
func (g *group) raise(index uint64, c *view) Code {
	if c.version <= g.charter.Rules {
		return Done
	}
	if c.version > g.supported {
		g.failed = fmt.Errorf("%w: entry %d raises the group to version %d, this build knows up to %d: run a newer build",
			ErrRules, index, c.version, g.supported)
		return Unsupported
	}
	g.bump()
	g.charter.Rules = c.version
	return Done
}

// takeRevisions takes revisions for the IDs of a Reserve. No token is equal to one of them, and
// later tokens are higher.
func (g *group) takeRevisions(c *view, res *Result) {
	before := g.rev
	if !g.reserveRevisions(Revision(c.count)) {
		res.Code = TooEarly
		return
	}
	res.Code, res.Token, res.Last = Done, Token(before+1), Token(g.rev)
}

// adopt takes no revision if it changes nothing, so a leader may repeat it.
func (g *group) adopt(c *view) Code {
	ttl := c.ttl > 0 && c.ttl != g.charter.SessionTTL
	settings := len(c.settings) > 0 && !bytes.Equal(c.settings, g.charter.Settings)
	limits := &g.charter.Limits
	session := c.sessionBytes > 0 && c.sessionBytes != limits.SessionBytes
	group := c.groupBytes > 0 && c.groupBytes != limits.GroupBytes
	if ttl || settings || session || group {
		g.bump()
	}
	if session {
		limits.SessionBytes = c.sessionBytes
	}
	if group {
		limits.GroupBytes = c.groupBytes
	}
	if ttl {
		g.charter.SessionTTL = c.ttl
	}
	if settings {
		g.charter.Settings = copied(c.settings) // a new slice, because the caller of Charter has the old one
	}
	return Done
}

func (g *group) bump() Revision {
	g.rev++
	return g.rev
}

// reserveRevisions takes n revisions at once, but never lifts the revision above the ceiling.
func (g *group) reserveRevisions(n Revision) bool {
	if g.rev+n > g.ceiling() {
		return false
	}
	g.rev += n
	return true
}

// ceiling returns the revision that a group would begin with if it were founded at the last wall
// stamp. No command takes many revisions beyond it. Otherwise the revisions of a group that is
// founded soon could be lower.
func (g *group) ceiling() Revision {
	return Revision(min(g.wallUnixMS, maxFoundedUnixMS)) << revisionBits
}
