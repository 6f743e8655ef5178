package mutants

func identity() []Bug {
	return []Bug{
		{Name: "nonce-is-proof", Some: true, Package: "session/keeper", Hazard: "none",
			Nodes:  "TestHostileTheftOfASession",
			Breaks: "a former voter, which knows the nonce of a session, takes the session and its locks"},
		{Name: "record-not-checked", Some: true, Package: "session/keeper", Hazard: "none", Nodes: "TestHostileRecords",
			Breaks: "a session names another instance, or another address, as its own"},
		{Name: "opened-by-any-instance", Some: true, Package: "session/client", Hazard: "none",
			Breaks: "an instance that was not asked opens a session, and acknowledges its leases"},
		{Name: "configuration-from-any-instance", Some: true, Package: "cluster/founding", Hazard: "none",
			Nodes:  "TestHostileHearsay",
			Breaks: "one question of any instance ends a voter, and makes its author the only voter"},
		{Name: "barred-by-any-instance", Some: true, Package: "cluster/founding", Hazard: "none",
			Breaks: "the word of any instance keeps another from founding or joining"},
		{Name: "attached-not-told", Package: "cluster", Hazard: "none",
			Breaks: "an instance learns of new voters by gossip only, and has none if several are replaced within a second"},
		{Name: "foreign-ends-a-life", Package: "cluster/lead", Hazard: "none", Nodes: "TestHostileProbes",
			Breaks: "a voter whose address another service answers is removed"},
		{Name: "stored-key-not-checked", Package: "cluster", Hazard: "none",
			Breaks: "a directory is used whose key is not that of its instance"},
		{Name: "name-ends-a-life", Package: "cluster/voters", Hazard: "none", Nodes: "TestHostileNames",
			Breaks: "an instance that registers under a voter's name removes that voter as soon as its link breaks"},
		{Name: "end-of-any-instance", Package: "internal/instance", Hazard: "none", Nodes: "TestHostileEnds",
			Breaks: "an instance that claims the raft ID of the leader ends its lead by saying that it has retired"},
		{Name: "claims-not-told", Package: "transport", Hazard: "none", Nodes: "TestHostileImpostors",
			Breaks: "the log does not say which instance was claimed, and from which address"},
		{Name: "gossip-moves-voters", Package: "cluster", Hazard: "none", Nodes: "TestHostileGossip",
			Breaks: "one packet of gossip moves the address of a voter"},
		{Name: "rival-by-hearsay", Package: "cluster", Hazard: "none", Nodes: "TestHostileGossip",
			Breaks: "one packet of gossip makes every instance report a second group"},
	}
}
