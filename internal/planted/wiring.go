package planted

// wiring are the bugs of the rooms around the cores, and of the root.
func wiring() []Bug {
	return []Bug{
		{Name: "no-rejoin", Room: "cluster", Hazard: "56", Nodes: "TestLongCutHeals", Breaks: "two halves that have forgotten each other never meet again"},
		{Name: "answered-before-stored", Room: "cluster", Hazard: "35", Breaks: "the answer to a charter leaves before the directory has it"},
		{Name: "no-group-check", Room: "transport", Hazard: "32, 33", Nodes: "TestForeignGroupDoesNotMix", Breaks: "messages of another group reach raft and sessions"},
		{Name: "no-sender-check", Room: "transport", Hazard: "45", Breaks: "a raft message under another's ID is believed"},
		{Name: "no-instance-check", Room: "transport", Hazard: "58, S5", Breaks: "whoever is at an address answers for whom was asked"},
		{Name: "any-end-is-a-down", Room: "transport", Hazard: "A7", Breaks: "the end of one of two crossing streams counts as the end of the peer"},
		{Name: "keepalive-mismatch", Room: "transport", Hazard: "75", Nodes: "TestAnHourOfNothing", Breaks: "gRPC's server ends the streams of clients that ping as often as ours do"},
		{Name: "raft-from-anybody", Room: ".", Hazard: "45, 58", Nodes: "TestHostileRaftMessages", Breaks: "any member can speak as a voter and stop the leader"},
		{Name: "retired-after-restart", Room: ".", Hazard: "55", Nodes: "TestRetirementAgainstRestart",
			Breaks: "a voter that retires while its instance starts anew says for ever that it belongs to the old group"},
		{Name: "broken-state-goes-on", Room: ".", Hazard: "53, 55", Nodes: "TestBrokenStateEndsTheNode", Breaks: "a node whose state machine is broken goes on"},
	}
}
