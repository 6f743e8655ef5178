package voters

// Facts are what a leader sees at one moment, without what it has to remember. A Steward makes a View of them. Nothing in them is changed, and
// nothing that they share may be changed by others afterwards.
type Facts struct {
	// Self is the raft ID of the replica that looks. It leads, and its first own entry is applied.
	Self ID
	// Settings are the group's, from the charter or a later command, never the instance's own.
	Settings Settings
	// Config is the configuration that is committed and applied here.
	Config Config
	// Pending is set while a change of configuration is in the log and not applied, and while the lead is being handed over.
	Pending bool
	// Replicas are those of Config, one each, LifeOver unset.
	Replicas []Replica
	// Registered are the instances that have a session, Lost unset. Those whose session has ended the Steward adds from memory.
	Registered []Registered
	// Remarks are for people who ask how the group stands; nothing is decided by them.
	Remarks []string
}

// Probe is a question that the leader asks about a replica that it has no stream with: does that life still go on?
type Probe struct {
	// ID is the replica that it is about.
	ID ID
	// Instance is the life that is looked for.
	Instance Instance
	// Addr is where to ask.
	Addr string
}
