package planted

// fleet are the bugs of large fleets: what grows with the square of the number of instances.
func fleet() []Bug {
	return []Bug{
		{Name: "asks-everybody", Room: "cluster/birth", Hazard: "none", Some: true,
			Breaks: "an instance that is no founder asks all others, and the questions grow with the square of the fleet"},
		{Name: "joiners-asked-back", Room: "cluster/birth", Hazard: "none", Breaks: "a founder asks every instance back that asks it"},
		{Name: "others-silence-blocks", Room: "cluster/birth", Hazard: "none", Some: true,
			Breaks: "a silent address that is no founder's keeps the founders from founding"},
		{Name: "living-group-not-sought", Room: "cluster/birth", Hazard: "none",
			Breaks: "founders found without asking any other address behind Join whether a group lives"},
		{Name: "founders-not-named", Room: "cluster/birth", Hazard: "none", Some: true,
			Breaks: "founders whose Join names one seed never meet"},
		{Name: "no-second-look", Room: "cluster/birth", Hazard: "none", Some: true,
			Breaks: "a member with a leader never learns of another group, or of voters that it was not told of"},
		{Name: "joiners-gossip", Room: "cluster", Hazard: "none", Breaks: "every instance gossips with every other"},
		{Name: "asks-unbounded", Room: "cluster", Hazard: "none", Breaks: "an instance asks all addresses at the same moment, one of them several times"},
		{Name: "rejoin-unbounded", Room: "cluster", Hazard: "none", Breaks: "each answer starts an exchange of all that gossip knows"},
		{Name: "asks-the-leader-for-ever", Room: "cluster", Hazard: "none", Breaks: "an instance that does not gossip asks the leader every two seconds"},
		{Name: "attached-told-at-once", Room: "cluster", Hazard: "none", Breaks: "the leader of a large fleet dials all that are attached at the same moment"},
	}
}
