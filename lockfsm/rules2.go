package lockfsm

// This file contains the additions of version 2 of the rules.

// LapsesSince is the rules version that adds the Value of a Detach: the reason why a hold ends, or
// loses its holder, although the holder has not released it. The cause of the event is Expired, and
// the audit log keeps the event.
const LapsesSince = 2

// PermitCirclesSince is the rules version that also refuses a request with Deadlock if it would
// wait for its own end through permits that only blocked requests could return. The version in
// force counts, not the version of the command.
const PermitCirclesSince = 2

func (c *view) lapses() bool { return c.Kind == Detach && len(c.value) > 0 }

// explained reports whether an event of the audit log has a valid field How. An eviction must have
// it. An expiry may have only a reason, since version 2.
func (m *Machine) explained(e *Event) bool {
	switch {
	case e.Cause == Evicted:
		return e.How != nil
	case e.How == nil:
		return true
	}
	return m.charter.Rules >= LapsesSince && len(e.How.By) == 0 && len(e.How.Reason) > 0
}
