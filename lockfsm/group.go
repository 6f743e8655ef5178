package lockfsm

import (
	"bytes"
	"fmt"
)

// stamp keeps the largest wall stamp, because a new leader's clock may be behind.
func (m *Machine) stamp(c *view) Code {
	if c.wallUnixMS > m.wallUnixMS {
		m.bump()
		m.wallUnixMS = c.wallUnixMS
	}
	return Done
}

func (m *Machine) applyBorn() Code {
	if !m.born {
		m.bump()
		m.born = true
		m.graceOver = m.charter.Grace == 0
	}
	return Done
}

func (m *Machine) endGrace() Code {
	if m.graceOver {
		return Done
	}
	m.bump()
	m.graceOver = true
	for l := m.firstLock; l != nil; l = l.next {
		for e := l.first; e != l.boundary; e = e.after {
			m.touch(e)
		}
	}
	m.fire()
	return Done
}

// raise raises the rules version. A machine that does not have the new version fails, because its
// state would diverge.
func (m *Machine) raise(index uint64, c *view) Code {
	if c.version <= m.charter.Rules {
		return Done
	}
	if c.version > m.supported {
		m.failed = fmt.Errorf("%w: entry %d raises the group to version %d, this build knows up to %d: run a newer build",
			ErrRules, index, c.version, m.supported)
		return Unsupported
	}
	m.bump()
	m.charter.Rules = c.version
	return Done
}

// takeRevisions takes revisions for the IDs of a Reserve. No token is equal to one of them, and
// later tokens are higher.
func (m *Machine) takeRevisions(c *view, res *Result) {
	if m.rev+Revision(c.count) > m.ceiling() {
		res.Code = TooEarly
		return
	}
	res.Code, res.Token = Done, Token(m.rev+1)
	m.rev += Revision(c.count)
	res.Last = Token(m.rev)
}

// adopt takes no revision if it changes nothing, so a leader may repeat it.
func (m *Machine) adopt(c *view) Code {
	ttl := c.ttl > 0 && c.ttl != m.charter.SessionTTL
	settings := len(c.settings) > 0 && !bytes.Equal(c.settings, m.charter.Settings)
	limits := &m.charter.Limits
	session := c.sessionBytes > 0 && c.sessionBytes != limits.SessionBytes
	group := c.groupBytes > 0 && c.groupBytes != limits.GroupBytes
	if ttl || settings || session || group {
		m.bump()
	}
	if session {
		limits.SessionBytes = c.sessionBytes
	}
	if group {
		limits.GroupBytes = c.groupBytes
	}
	if ttl {
		m.charter.SessionTTL = c.ttl
	}
	if settings {
		m.charter.Settings = copied(c.settings) // a new slice, because the caller of Charter has the old one
	}
	return Done
}
