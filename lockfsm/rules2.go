package lockfsm

// What version 2 of the rules has added.

// LapsesSince is the version since which a Detach can give, in Value, the reason why a hold ends or
// is left although its holder has not released it: the client of an agent has died, or the hold has
// lasted as long as its request allows. Its cause is Expired, and the audit log keeps it.
const LapsesSince = 2

// PermitCirclesSince is the version since which a request is also refused as a deadlock if it would
// wait for its own end through permits that only blocked requests could return. The version in
// force decides, since the command is unchanged.
const PermitCirclesSince = 2

// lapses reports whether the command ends a hold that its holder has not released.
func (c *view) lapses() bool { return c.Kind == Detach && len(c.value) > 0 }

// explained reports whether an end in a snapshot has an explanation exactly where the rules in
// force require or allow one.
func (m *Machine) explained(e *Event) bool {
	switch {
	case e.Cause == Evicted:
		return e.How != nil
	case e.How == nil:
		return true
	}
	return m.charter.Rules >= LapsesSince && len(e.How.By) == 0 && len(e.How.Reason) > 0
}
