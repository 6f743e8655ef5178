package mutants

// fleet returns the bugs in which a cost grows with the square of the number of instances.
func fleet() []Bug {
	return []Bug{
		{Name: "asks-all", Package: "cluster/founding", Hazard: "none", Some: true,
			Breaks: "an instance that is no founder asks all others, and the questions grow with the square of the fleet"},
		{Name: "joiners-asked-back", Package: "cluster/founding", Hazard: "none",
			Breaks: "a founder asks every instance back that asks it"},
		{Name: "others-silence-blocks", Package: "cluster/founding", Hazard: "none", Some: true,
			Breaks: "a silent address that is no founder's keeps the founders from founding"},
		{Name: "living-group-not-sought", Package: "cluster/founding", Hazard: "none",
			Breaks: "founders found without asking any other address behind Join whether a group lives"},
		{Name: "founders-not-named", Package: "cluster/founding", Hazard: "none", Some: true,
			Breaks: "founders whose Join names one seed never meet"},
		{Name: "no-second-look", Package: "cluster/founding", Hazard: "none", Some: true,
			Breaks: "a member with a leader never learns of another group, or of voters that it was not told of"},
		{Name: "lookup-beside-another", Package: "cluster/discovery", Hazard: "none",
			Breaks: "a function of the user that does not return is called again each second, and each call takes a goroutine"},
		{Name: "failed-lookup-is-absence", Package: "cluster/discovery", Hazard: "none", Some: true,
			Breaks: "an instance whose name server is down takes it that no instance is there, and founds a group without them"},
		{Name: "joiners-gossip", Package: "cluster", Hazard: "none", Breaks: "every instance gossips with every other"},
		{Name: "asks-unbounded", Package: "cluster", Hazard: "none",
			Breaks: "an instance asks all addresses at the same moment, one of them several times"},
		{Name: "rejoin-unbounded", Package: "cluster", Hazard: "none",
			Breaks: "each answer starts an exchange of all that gossip knows"},
		{Name: "asks-the-leader-forever", Package: "cluster", Hazard: "none",
			Breaks: "an instance that does not gossip asks the leader every two seconds"},
		{Name: "attached-told-at-once", Package: "cluster", Hazard: "none",
			Breaks: "the leader of a large fleet dials all that are attached at the same moment"},
	}
}

// words returns the bugs in the handling of duplicate names and in the texts for operators.
func words() []Bug {
	return []Bug{
		{Name: "second-of-a-name-votes", Package: "cluster/voters", Hazard: "none", Some: true,
			Breaks: "a second instance with the name of a voter gets a vote beside it"},
		{Name: "namesake-ends-a-life", Package: "cluster/voters", Hazard: "none", Some: true,
			Breaks: "an instance with the name of a running voter removes that voter after one second of silence"},
		{Name: "names-shared", Package: "cluster/founding", Hazard: "none",
			Breaks: "a group is founded by instances of one name, and none of them can be replaced later"},
		{Name: "namesake-not-told", Package: "cluster", Hazard: "none", Nodes: "TestWords",
			Breaks: "neither of two instances with one name says so"},
		{Name: "born-at-each-start", Package: "cluster", Hazard: "none", Nodes: "TestWords",
			Breaks: "each restart with a directory says that a group is born"},
		{Name: "lease-without-locks-warned", Package: "internal/instance", Hazard: "none", Nodes: "TestWords",
			Breaks: "an instance that held nothing warns that its locks are lost"},
		{Name: "cut-off-at-once", Package: "cluster/founding", Hazard: "none",
			Breaks: "each start says that the instance is cut off from its leader"},
		{Name: "crowd-is-a-warning", Package: "transport", Hazard: "none",
			Breaks: "a large fleet that starts at once warns of connections that were refused"},
	}
}
