package lockfsm

// What version 2 of the rules has added. A group follows it once all its instances know it.

// LapsesSince is the version from which on a Detach can say, in Value, why a hold ends or is left
// that its holder has not given back: the client of an agent has died, or the hold has lasted as
// long as its request allows. Such an end is Expired, and is kept with the other ends for people.
const LapsesSince = 2

// PermitCirclesSince is the version from which on a request is refused as a deadlock also if it
// would wait for its own end through permits that only the blocked ones could give back. The
// command is the same, so the version in force decides and not that of the command.
const PermitCirclesSince = 2

// lapses reports whether the command ends a hold that its holder has not given back.
func (c *view) lapses() bool { return c.Kind == Detach && len(c.value) > 0 }

// explained reports whether an end that a snapshot lists has an explanation exactly where the rules
// in force give one.
func (m *Machine) explained(e *Event) bool {
	switch {
	case e.Cause == Evicted:
		return e.How != nil
	case e.How == nil:
		return true
	}
	return m.charter.Rules >= LapsesSince && len(e.How.By) == 0 && len(e.How.Reason) > 0
}
