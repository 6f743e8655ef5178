package voters

import (
	"iter"
	"slices"
)

// Facts are what a leader sees at one moment, without what it has to remember. A Steward makes a
// View of them. Nothing in them is changed, and nothing that they share may be changed by others
// afterwards, except for Others.
type Facts struct {
	// Self is the raft ID of the replica that looks. It leads, and its first own entry is applied.
	Self ID
	// Settings are the group's, from the charter or a later command, never the instance's own.
	Settings Settings
	// Config is the configuration that is committed and applied here.
	Config Config
	// Pending is set while a change of configuration is in the log and not applied, and while the
	// lead is being handed over.
	Pending bool
	// Replicas are those of Config, one each, LifeOver unset.
	Replicas []Replica
	// Registered are the instances that have a session, Lost unset. Those whose session has ended
	// the Steward adds from memory. All that may vote are in it, by Settings.Founders, and all that
	// have a replica or its name.
	Registered []Registered
	// Others are the instances that have a session and are not in Registered. Nil means none. It is
	// live: it belongs to the goroutine that looks.
	Others Others
	// Remarks are for people who ask how the group stands; nothing is decided by them.
	Remarks []string
}

// Others are instances that have a session and can get no vote. No step depends on one of them, so
// a look does not read them; there may be thousands.
type Others interface {
	// All goes through them, in any order. It costs time in proportion to all that are registered.
	All() iter.Seq[Registered]
	// Has reports whether it, or Registered, has an instance.
	Has(Instance) bool
}

// All goes through all instances that have a session, as they are now: it takes time in proportion
// to them.
func (f *Facts) All() iter.Seq[Registered] {
	return func(yield func(Registered) bool) {
		for _, r := range f.Registered {
			if !yield(r) {
				return
			}
		}
		if f.Others != nil {
			f.Others.All()(yield)
		}
	}
}

// Knows reports whether an instance has a session.
func (f *Facts) Knows(instance Instance) bool {
	is := func(r Registered) bool { return r.Session && r.Instance == instance }
	return slices.ContainsFunc(f.Registered, is) || f.Others != nil && f.Others.Has(instance)
}

// Probe is a question that the leader asks about a replica that it has no stream with: does that
// life still go on?
type Probe struct {
	// ID is the replica that it is about.
	ID ID
	// Instance is the life that is looked for.
	Instance Instance
	// Addr is where to ask.
	Addr string
}

// Same reports whether nothing has changed that a step may have failed for: a caller that has just
// carried out a step carries out the same one again only when something has. How long somebody is
// silent and how far a replica has come change all the time.
func (f *Facts) Same(o *Facts) bool {
	heard := func(x, y Replica) bool { return x.ID == y.ID && x.Active == y.Active && x.Linked == y.Linked }
	return f.Self == o.Self && f.Pending == o.Pending && slices.Equal(f.Config.Voters, o.Config.Voters) &&
		slices.Equal(f.Config.Outgoing, o.Config.Outgoing) && slices.Equal(f.Config.Learners, o.Config.Learners) &&
		slices.EqualFunc(f.Replicas, o.Replicas, heard) && slices.Equal(f.Registered, o.Registered)
}

// Where returns the address under which an instance has registered last, or "".
func (f *Facts) Where(instance Instance) string {
	addr, order := "", uint64(0)
	for _, r := range f.Registered {
		if r.Instance == instance && r.Addr != "" && (addr == "" || r.Order > order) {
			addr, order = r.Addr, r.Order
		}
	}
	return addr
}
