package planted

// birth are the bugs of the founding of a group.
func birth() []Bug {
	return []Bug{
		{Name: "born-without-all", Room: "cluster/birth", Hazard: "32, L1", Some: true, Breaks: "a group is born before everybody on its list is bound to it"},
		{Name: "accepts-twice", Room: "cluster/birth", Hazard: "S5, A1", Some: true, Breaks: "an instance that is bound accepts another charter in the same life"},
		{Name: "answers-twice", Room: "cluster/birth", Hazard: "S5", Breaks: "a charter that was refused is accepted when it comes again"},
		{Name: "silence-is-an-answer", Room: "cluster/birth", Hazard: "34, 32", Some: true, Breaks: "who does not answer counts as gone, and a second group is founded"},
		{Name: "silent-join-is-absence", Room: "cluster/birth", Hazard: "none", Nodes: "TestASoleFounderBehindACut",
			Breaks: "the one founder that is left of three restarts behind a cut and founds a second group beside the first"},
		{Name: "answers-for-another", Room: "cluster/birth", Hazard: "S5", Breaks: "a question to one life is answered by another at its address"},
		{Name: "identity-kept", Room: "cluster/birth", Hazard: "30, S4", Breaks: "a restart in place keeps its ID, and a raft ID gets a second life without its data"},
		{Name: "old-answers-count", Room: "cluster/birth", Hazard: "L1", Breaks: "a member that was cut off gives up a living group on answers from before"},
		{Name: "given-up-while-believed", Room: "cluster/birth", Hazard: "A10, S8", Breaks: "a member gives up its group while its locks are still believed in"},
		{Name: "charter-not-durable", Room: "cluster/birth", Hazard: "35, A1", Some: true, Breaks: "an acceptance is told before the directory has it"},
		{Name: "durable-group-given-up", Room: "cluster/birth", Hazard: "68", Breaks: "instances whose directories hold a group found another"},
		{Name: "others-found", Room: "cluster/birth", Hazard: "S3", Some: true, Breaks: "instances that are no founders are listed and vote"},
		{Name: "incomplete-list", Room: "cluster/birth", Hazard: "A2, S2", Some: true, Breaks: "a part of the fleet founds a group of its own"},
		{Name: "living-group-ignored", Room: "cluster/birth", Hazard: "33", Breaks: "a group is founded in sight of one that has a leader"},
		{Name: "clocks-not-compared", Room: "cluster/birth", Hazard: "S7, 28", Breaks: "a founding time that is wrong by minutes is accepted, and a later group's tokens are lower"},
		{Name: "settings-not-compared", Room: "cluster/birth", Hazard: "54", Breaks: "instances that were told different settings found a group"},
		{Name: "bound-for-ever", Room: "cluster/birth", Hazard: "A1", Some: true, Breaks: "a founding that failed leaves its instances stuck"},
		{Name: "prepared-not-durable", Room: "cluster/birth", Seeds: 60, Hazard: "S4, 35", Some: true, Breaks: "a replica is said to run before the directory has its raft ID"},
		{Name: "prepared-twice", Room: "cluster/birth", Hazard: "S4, B1", Some: true, Breaks: "a Prepare that comes again gives a raft ID a second life with an empty log"},
		{Name: "stale-prepare-ends-voter", Room: "cluster/birth", Hazard: "S4", Breaks: "the late Prepare of a leader of before ends a replica whose vote counts"},
		{Name: "removed-not-told", Room: "cluster/birth", Seeds: 20, Hazard: "B2", Some: true, Breaks: "a replica that was removed goes on, and asks for votes for ever"},
		{Name: "at-ignored", Room: "cluster/birth", Hazard: "B2", Breaks: "an older configuration takes the place of a newer one"},
		{Name: "recover-with-leader", Room: "cluster/birth", Hazard: "B10", Breaks: "a group that lives is given up, and an operator makes two of it"},
		{Name: "floor-ignored", Room: "cluster/birth", Hazard: "B10, S7", Breaks: "a group is founded below tokens that its founders have seen"},
		{Name: "book-moves-ids", Room: "cluster/birth", Hazard: "45, 58", Breaks: "the address book gives a voter's raft ID to another instance"},
		{Name: "removed-vote-forgotten", Room: "cluster/birth", Hazard: "A5", Some: true,
			Breaks: "a replica that was removed does not go on after a crash, and whoever does not know that it was removed needs its vote"},
		{Name: "born-from-anybody", Room: "cluster/birth", Hazard: "none", Some: true, Breaks: "a directory keeps a group that was never born, since an instance that is not on its list has said that it was"},
		{Name: "directory-given-up-on-hearsay", Room: "cluster/birth", Hazard: "none", Some: true, Breaks: "any holder of the secret ends a replica with a directory that was cut off for one TTL"},
		{Name: "superseded-by-anybody", Room: "cluster/birth", Hazard: "none", Some: true, Breaks: "any holder of the secret ends the directories of a group, one by one, at an election"},
	}
}
