package mutants

// shells are the bugs of the goroutines around the cores: bounds that are counted on from turn to turn, and results that are ignored.
func shells() []Bug {
	return []Bug{
		{Name: "queue-counts-on", Room: "transport", Hazard: "none", Breaks: "a link takes no word after 8 MiB in its life"},
		{Name: "raft-bytes-count-on", Room: "transport", Hazard: "none", Breaks: "a link takes no raft message after 64 MiB of them in its life"},
		{Name: "message-blocks-the-queue", Room: "transport", Hazard: "none", Breaks: "a raft message that fits no frame keeps back all others of its link for ever"},
		{Name: "dropped-queue-takes", Room: "transport", Hazard: "none", Breaks: "what is sent beside the end of a link is accepted, and no Down comes behind it"},
		{Name: "last-word-first", Room: "transport", Hazard: "A7", Breaks: "that a replica has retired overtakes its last raft messages"},
		{Name: "failed-write-goes-on", Room: "transport", Hazard: "none", Breaks: "frames arrive behind one that was lost, with no Down between them"},
		{Name: "messages-counted-on", Room: "raftlog", Hazard: "none", Breaks: "a replica is deaf after 64 MiB of messages in its life"},
		{Name: "batches-counted-on", Room: "raftlog", Hazard: "none", Breaks: "a leader takes no command after 64 MiB of them"},
		{Name: "stands-at-every-turn", Room: "raftlog", Hazard: "none", Breaks: "a replica that was asked once to stand for election stands again with every turn"},
		{Name: "ended-log-collects", Room: "raftlog", Hazard: "none", Breaks: "a log that has ended keeps what it is brought, for a turn that never comes"},
		{Name: "lost-stream-ignored", Room: "raftlog", Hazard: "none", Breaks: "what was lost with a stream counts as sent until the replica refuses what follows"},
		{Name: "lost-leader-ignored", Room: "raftlog", Hazard: "A7", Breaks: "the end of a leader's last stream reaches the log and not its core, and a crash costs an election timeout"},
		{Name: "peer-counted-on", Room: "session/keeper", Hazard: "none", Breaks: "the leader is deaf to a peer after 8 MiB of its frames"},
		{Name: "frames-counted-on", Room: "session/keeper", Hazard: "none", Breaks: "the leader is deaf to all after 64 MiB of frames"},
		{Name: "refused-proposal-ignored", Room: "session/keeper", Hazard: "A8", Breaks: "commands that the log did not take count as proposed, and their calls wait until the client gives the leader up"},
		{Name: "refused-replies-ignored", Room: "session/keeper", Hazard: "A7", Breaks: "a grant that the transport did not take counts as told, and its call waits until the client gives the leader up"},
		{Name: "replies-counted-on", Room: "session/client", Hazard: "none", Breaks: "a client hears no voter but its leader after 1 MiB of replies"},
		{Name: "leaders-replies-counted-on", Room: "session/client", Hazard: "none", Breaks: "a client takes its leader's stream for ended with every reply after 64 MiB of them"},
		{Name: "overflown-for-ever", Room: "session/client", Hazard: "none", Breaks: "a client that was told too much at once hears its leader no more"},
		{Name: "unsent-frame-ignored", Room: "session/client", Hazard: "A7", Breaks: "a request that the transport did not take counts as sent, and its call waits until the client gives the leader up"},
		{Name: "held-at-the-deadline", Room: "session/client", Hazard: "2", Breaks: "a hold says that it is held at the instant from which another may have the lock"},
		{Name: "leaves-without-goodbye", Room: "internal/instance", Hazard: "none", Nodes: "TestLeaveSaysGoodbye",
			Breaks: "an instance that has left is asked, and shown, until gossip has found out"},
		{Name: "permit-is-a-shared-lock", Room: ".", Hazard: "none",
			Breaks: "a Shared request under a permit of a semaphore holds its lock without a grant"},
		{Name: "own-sessions-not-told", Room: "internal/instance", Hazard: "A7", Nodes: "TestAllSessionsAreToldOfALostStream",
			Breaks: "a session that a program has opened itself waits for a leader that is gone until its next renewal"},
		{Name: "last-frame-not-synced", Room: "raftlog/storage", Hazard: "38",
			Breaks: "at open a mark is written behind a frame that the disk may not have, and a crash leaves what reads as damage"},
	}
}
