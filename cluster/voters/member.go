package voters

// member is a replica of the configuration, joined with its instance.
type member struct {
	Replica
	info    Registered
	known   bool // the registration of the replica's instance is known
	voter   bool
	self    bool
	dead    bool // rule 11
	foreign bool // the instance is not a founder, and only founders may vote
	double  bool // another fit replica runs in this learner's process or has its name
}

// fit reports whether the member may remain. A short silence or a missing session does not matter.
func (m *member) fit() bool {
	return !m.dead && !m.info.Leaving && !m.foreign && !m.double
}

// promotable reports whether the member is a learner that may get a vote now. It must have the
// current configuration, because voters without it ignore each other's messages and could not elect
// a leader.
func (m *member) promotable() bool {
	return !m.voter && m.fit() && m.Active && m.info.Session && m.CaughtUp && m.Settled
}
