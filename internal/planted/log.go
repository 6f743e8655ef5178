package planted

// log are the bugs of the replicated log and its disk.
func log() []Bug {
	return []Bug{
		{Name: "batch-in-another-term", Room: "raftlog", Hazard: "5, A8", Some: true, Breaks: "what a leader queued in one term is proposed when it leads again in another"},
		{Name: "proposals-forwarded", Room: "raftlog", Hazard: "5", Some: true, Breaks: "what a deposed leader has decided is committed by the next one"},
		{Name: "sent-before-durable", Room: "raftlog", Hazard: "35", Some: true, Breaks: "votes and acknowledgements leave before the disk has what they promise"},
		{Name: "applied-before-durable", Room: "raftlog", Hazard: "36", Breaks: "a lone voter applies and answers what its disk does not have"},
		{Name: "vote-not-durable", Room: "raftlog", Hazard: "35, 30", Breaks: "a vote is not stored, and is given again after a restart"},
		{Name: "founded-again", Room: "raftlog", Hazard: "30", Some: true, Breaks: "a raft ID begins a second life with an empty log"},
		{Name: "confirmed-before-applied", Room: "raftlog", Hazard: "A8", Some: true, Breaks: "a round is confirmed with a state that lacks what was committed before it"},
		{Name: "confirmed-without-quorum", Room: "raftlog", Hazard: "1, 27", Some: true, Nodes: "TestCutOffHolderLosesBeforeOthersAreGranted",
			Breaks: "a deposed leader confirms rounds that no majority has seen"},
		{Name: "read-before-own-entry", Room: "raftlog", Hazard: "A8", Some: true, Breaks: "a new leader confirms before it knows what is committed"},
		{Name: "snapshot-without-its-learner", Room: "raftlog", Hazard: "A6, 42", Some: true, Breaks: "a learner is sent a snapshot from before its addition and never catches up"},
		{Name: "context-dropped-in-snapshot", Room: "raftlog", Hazard: "39", Some: true, Breaks: "who gets a snapshot does not know who is who, and reaches nobody"},
		{Name: "pending-forgotten", Room: "raftlog", Hazard: "40", Some: true, Breaks: "a change is taken while another is in flight, and raft throws it away"},
		{Name: "refused-change-stays", Room: "raftlog", Hazard: "40", Breaks: "a change that raft has thrown away is waited for, and no other is ever made"},
		{Name: "not-auto-leave", Room: "raftlog", Hazard: "40", Some: true, Breaks: "a joint configuration is never left"},
		{Name: "settled-too-early", Room: "raftlog", Hazard: "A5", Some: true, Breaks: "who has the entry of a configuration is taken to know that it is committed"},
		{Name: "never-nudged", Room: "raftlog", Hazard: "A5", Breaks: "in a quiet group nobody is ever known to know the configuration, and a joint one is not left after a transfer that failed"},
		{Name: "heard-of-earlier-lead-counts", Room: "raftlog", Hazard: "41", Some: true, Breaks: "a new leader takes for present who was heard of by an earlier lead"},
		{Name: "more-than-the-leader", Room: "raftlog", Hazard: "41", Some: true, Breaks: "who has lost its vote has what its leader lost in a crash, and nobody can be elected"},
		{Name: "snapshot-fate-unreported", Room: "raftlog", Hazard: "47", Breaks: "raft waits for ever for a snapshot that was lost"},
		{Name: "hung-leader-stays", Room: "raftlog", Hazard: "L2, 66", Some: true, Nodes: "TestHungDiskOfTheLeader", Breaks: "a leader whose disk hangs leads for ever and answers nobody"},
		{Name: "stall-counts-as-silence", Room: "raftlog", Hazard: "12, 51", Breaks: "who slept calls an election before it has read what waits for it"},
		{Name: "panic-ends-the-process", Room: "raftlog", Hazard: "55", Breaks: "a panic in raft kills the host"},
		{Name: "storage-error-ignored", Room: "raftlog", Hazard: "61", Breaks: "a voter goes on although its store has failed"},
		{Name: "failed-sync-repeated", Room: "raftlog", Hazard: "61", Breaks: "a sync that failed is tried again, and what it says then is believed"},
		{Name: "no-checksum", Room: "raftlog", Hazard: "62", Breaks: "a flipped bit on the disk is read as data"},
		{Name: "snapshot-not-synced", Room: "raftlog", Hazard: "38", Breaks: "the log is cut off before the snapshot that replaces it is durable"},
		{Name: "log-reset-first", Room: "raftlog", Hazard: "38", Breaks: "the snapshot before goes before the log names the new one"},
		{Name: "made-in-place", Room: "raftlog", Hazard: "64", Breaks: "a directory whose creation was cut short cannot be opened"},
		{Name: "dead-leader-remembered", Room: "raftlog", Hazard: "L10", Some: true,
			Breaks: "a learner names a leader that is dead for ever, newborns join its group, and no new one is founded"},
	}
}
