package planted

// wiring are the bugs of the rooms around the cores, and of the root.
func wiring() []Bug {
	return []Bug{
		{Name: "no-rejoin", Room: "cluster", Hazard: "56", Nodes: "TestLongCutHeals", Breaks: "two halves that have forgotten each other never meet again"},
		{Name: "answered-before-stored", Room: "cluster", Hazard: "35", Breaks: "the answer to a charter leaves before the directory has it"},
		{Name: "configuration-not-announced", Room: "cluster", Hazard: "B1", Breaks: "a replica that was removed is not told, and goes on for as long as gossip does not reach it"},
		{Name: "old-configuration-wins", Room: "cluster", Hazard: "45", Breaks: "who lags takes back a newer configuration that it has heard of"},
		{Name: "consult-answered-by-follower", Room: "cluster", Hazard: "A5", Breaks: "a voter is told that it may stop by somebody who does not lead and knows nothing"},
		{Name: "step-repeated", Room: "cluster", Hazard: "40", Breaks: "a step is handed to the log at every look until its effect shows"},
		{Name: "stray-not-limited", Room: "cluster", Hazard: "76", Breaks: "every message of a removed replica is answered with the whole configuration"},
		{Name: "newer-not-pulled", Room: "cluster", Hazard: "B8", Breaks: "a configuration reaches nobody but those whose log applies it"},
		{Name: "no-group-check", Room: "transport", Hazard: "32, 33", Nodes: "TestForeignGroupDoesNotMix", Breaks: "messages of another group reach raft and sessions"},
		{Name: "no-sender-check", Room: "transport", Hazard: "45", Breaks: "a raft message under another's ID is believed"},
		{Name: "no-instance-check", Room: "transport", Hazard: "58, S5", Breaks: "whoever is at an address answers for whom was asked"},
		{Name: "any-end-is-a-down", Room: "transport", Hazard: "A7", Breaks: "the end of one of two crossing streams counts as the end of the peer"},
		{Name: "keepalive-mismatch", Room: "transport", Hazard: "75", Nodes: "TestAnHourOfNothing", Breaks: "gRPC's server ends the streams of clients that ping as often as ours do"},
		{Name: "no-pulse", Room: "transport", Hazard: "none", Breaks: "a link on which nobody has anything to say is taken for dead"},
		{Name: "no-silence", Room: "transport", Hazard: "none", Breaks: "a peer that has lost its power is linked until TCP gives it up, after a quarter of an hour or never"},
		{Name: "busy-is-silent", Room: "transport", Hazard: "none", Breaks: "who is slow to take frames in takes its peer for silent"},
		{Name: "hello-in-company", Room: "transport", Hazard: "none", Breaks: "of two instances that dial each other with much to say the first stream is refused, with all that waited for it"},
		{Name: "sender-left-behind", Room: "transport", Hazard: "none", Breaks: "a link whose peer has gone while we were writing to it stays up for ever"},
		{Name: "raft-from-anybody", Room: ".", Hazard: "45, 58", Nodes: "TestHostileRaftMessages", Breaks: "any member can speak as a voter and stop the leader"},
		{Name: "ready-ignores-voters", Room: ".", Hazard: "L6", Nodes: "TestReadyPacesADeployment",
			Breaks: "a rolling deployment is faster than the replacement of voters, and the group loses its majority"},
		{Name: "leaver-does-not-wait", Room: ".", Hazard: "B4", Nodes: "TestLeaveHandsTheVoteOver",
			Breaks: "an instance that leaves stops before others have taken over its vote and its lead"},
		{Name: "raised-before-everybody", Room: ".", Hazard: "53, S6", Nodes: "TestRulesAreRaisedWhenEverybodyKnowsThem",
			Breaks: "the leader raises the rules while a build that does not know them is there, and ends it"},
		{Name: "retired-after-restart", Room: ".", Hazard: "55", Nodes: "TestRetirementAgainstRestart",
			Breaks: "a voter that retires while its instance starts anew says for ever that it belongs to the old group"},
		{Name: "broken-state-goes-on", Room: ".", Hazard: "53, 55", Nodes: "TestBrokenStateEndsTheNode", Breaks: "a node whose state machine is broken goes on"},
		{Name: "first-exit-frees", Room: ".", Hazard: "none", Nodes: "TestEntriesAreCounted", Breaks: "a lock that was entered again is free when the first of its handles is unlocked"},
		{Name: "circle-behind-an-entry", Room: ".", Hazard: "none", Nodes: "TestACircleIsFoundBehindALockThatWasEnteredAgain",
			Breaks: "whoever enters an outer lock again under an inner one is not known to wait under the inner one, and a circle waits for ever"},
	}
}
