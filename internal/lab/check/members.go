package check

import "slices"

// Member is one replica of a configuration.
type Member struct {
	ID       uint64
	Instance uint64
}

// Members checks the replicas of a group's log. A raft ID belongs to one instance, is added to the
// configuration at most once, and begins without data at most once. All replicas report the same
// configuration at an index, and no instance has two votes in a configuration.
type Members struct {
	rule
	groups map[uint64]*membership
}

type membership struct {
	owner   map[uint64]uint64
	begun   map[uint64]bool
	configs []configuration
}

type configuration struct {
	at      uint64
	members []Member
	voters  []uint64
}

func (m *Members) group(id uint64) *membership {
	if m.groups == nil {
		m.groups = map[uint64]*membership{}
	}
	g := m.groups[id]
	if g == nil {
		g = &membership{owner: map[uint64]uint64{}, begun: map[uint64]bool{}}
		m.groups[id] = g
	}
	return g
}

// Begins records that an instance runs a replica with a raft ID from now on. empty means that the
// replica begins without data.
func (m *Members) Begins(group, id, instance uint64, empty bool) error {
	if m.err != nil {
		return m.err
	}
	g := m.group(group)
	if empty && g.begun[id] {
		return m.broken("members: replica %x of group %x begins empty a second time, on instance %x", id, group,
			instance)
	}
	g.begun[id] = g.begun[id] || empty
	return m.owned(g, group, Member{id, instance})
}

func (m *Members) owned(g *membership, group uint64, who Member) error {
	if owner, known := g.owner[who.ID]; known && owner != who.Instance {
		return m.broken("members: replica %x of group %x belongs to instance %x and to %x", who.ID, group, owner,
			who.Instance)
	}
	g.owner[who.ID] = who.Instance
	return nil
}

// Configured records that a replica has applied a configuration with these members. The parameter
// at is its index. For a joint configuration, voters has the voters of the incoming half.
// Configured may be called in any order and repeatedly. It reports whether the configuration was
// new.
func (m *Members) Configured(group, at uint64, members []Member, voters []uint64) (fresh bool, err error) {
	if m.err != nil {
		return false, m.err
	}
	g := m.group(group)
	i, known := slices.BinarySearchFunc(g.configs, at,
		func(c configuration, at uint64) int { return int(c.at) - int(at) })
	if known {
		if c := g.configs[i]; !slices.Equal(c.members, members) || !slices.Equal(c.voters, voters) {
			return false, m.broken("members: group %x at index %d is %x with the voters %x, and %x with %x", group,
				at, c.members, c.voters, members, voters)
		}
		return false, nil
	}
	g.configs = slices.Insert(g.configs, i, configuration{at: at, members: slices.Clone(members),
		voters: slices.Clone(voters)})
	for _, who := range members {
		if err := m.owned(g, group, who); err != nil {
			return true, err
		}
		if stays := g.stays(who.ID); stays > 1 {
			return true, m.broken("members: replica %x of group %x is in the configuration at index %d, "+
				"and had left it before", who.ID, group, at)
		}
	}
	for i, v := range voters {
		for _, o := range voters[:i] {
			if g.owner[v] == g.owner[o] {
				return true, m.broken("members: instance %x votes twice in group %x at index %d, as %x and as %x",
					g.owner[v], group, at, o, v)
			}
		}
	}
	return true, nil
}

func (g *membership) stays(id uint64) int {
	stays, in := 0, false
	for _, c := range g.configs {
		now := slices.ContainsFunc(c.members, func(m Member) bool { return m.ID == id })
		if now && !in {
			stays++
		}
		in = now
	}
	return stays
}
