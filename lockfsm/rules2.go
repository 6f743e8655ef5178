package lockfsm

// This file contains the additions of version 2 of the rules.

// LapsesSince is the first rules version in which a Detach can have a Value: the reason why the
// hold ends, or loses its holder, without a release. The event has the cause Expired, and the audit
// log keeps it.
const LapsesSince = 2

// PermitCirclesSince is the first rules version that also refuses deadlocks through permits. In
// such a deadlock, only requests that wait for the new request could return the permits that it
// needs. The version in force counts, not the version of the command.
const PermitCirclesSince = 2

func (c *view) lapses() bool { return c.Kind == Detach && len(c.value) > 0 }

// explained reports whether the field How of an event in the audit log is valid. An eviction must
// have it. Since version 2 an expiry may also have it, with a reason and no By.
func (m *Machine) explained(e *Event) bool {
	switch {
	case e.Cause == Evicted:
		return e.How != nil
	case e.Cause == Resumed:
		return m.charter.Rules >= StickySince && e.What == Ended && len(e.How.Reason) == 0
	case e.How == nil:
		return true
	}
	return m.charter.Rules >= LapsesSince && len(e.How.By) == 0 && len(e.How.Reason) > 0
}
