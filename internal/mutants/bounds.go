package mutants

// bounds are the bugs of what other instances can make one hold.
func bounds() []Bug {
	return []Bug{
		{Name: "calls-of-any-size", Room: "transport", Hazard: "none", Breaks: "sixty unfinished questions on one connection take gigabytes"},
		{Name: "no-hint-of-tls", Room: "transport", Hazard: "none", Breaks: "an instance without a secret takes one that has a secret for a machine that is gone, and the reverse"},
		{Name: "calls-arrive-forever", Room: "transport", Hazard: "none", Breaks: "a question that never ends is held for as long as its connection lives"},
		{Name: "arrivals-of-one-unbounded", Room: "transport", Hazard: "none", Breaks: "one instance that begins many calls ends the connections of others, whose calls take their time"},
		{Name: "connections-of-one-unbounded", Room: "transport", Hazard: "none", Breaks: "one instance takes all connections that there are for all"},
		{Name: "unheard-for-minutes", Room: "transport", Hazard: "none", Breaks: "after a cut of some seconds TCP tries again only after as long as the cut was"},
		{Name: "pauses-double", Room: "transport", Hazard: "none", Breaks: "on a network that loses packets each one lost doubles the pause before the next try, and an election takes seconds"},
		{Name: "no-quota", Room: "transport", Hazard: "none", Breaks: "one instance takes the places and the memory that are there for all"},
		{Name: "snapshot-judged-late", Room: "transport", Hazard: "none", Breaks: "a snapshot of another group is gathered whole before it is refused"},
		{Name: "snapshot-trickles", Room: "transport", Hazard: "none", Breaks: "a byte now and then keeps a place for a snapshot for ever"},
		{Name: "frames-unbounded", Room: "transport", Hazard: "none", Breaks: "links that begin large frames and do not end them take 64 MiB each"},
		{Name: "dials-of-any-rate", Room: "transport", Hazard: "none", Breaks: "dials that fail at once are begun as fast as they are asked for, by hundreds a second"},
		{Name: "no-kept-places", Room: "transport", Hazard: "none", Breaks: "addresses that hang take all places, and no voter is dialed for seconds"},
		{Name: "voters-not-preferred", Room: "transport", Hazard: "none", Breaks: "a voter that was cut off is dialed again only after half a minute"},
		{Name: "questions-never-pause", Room: "transport", Hazard: "none", Breaks: "a question dials an address at once again that has just failed"},
		{Name: "refusal-repeated", Room: "transport", Hazard: "none", Breaks: "what a dial has found out counts for questions that were put after it began"},
		{Name: "inbound-ends-no-pause", Room: "transport", Hazard: "none", Breaks: "an instance that has just proved its key is not dialed for half a minute"},
		{Name: "strangers-displaced-in-line", Room: "transport", Hazard: "none", Breaks: "after a failover each of a thousand handshakes is given up before its end, and none ends"},
		{Name: "no-spare-links", Room: "transport", Hazard: "none", Nodes: "TestAMemberKeepsSpareLinks", Breaks: "after a failover all instances need a handshake with the new leader at once"},
		{Name: "handshakes-unpaced", Room: "transport", Hazard: "none", Breaks: "a crowd of handshakes is computed all at once, and none ends in time"},
		{Name: "silence-keeps-its-turn", Room: "transport", Hazard: "none", Breaks: "a few connections that say nothing after their first bytes keep all others out"},
		{Name: "strangers-come-first", Room: "transport", Hazard: "none", Breaks: "in a flood known instances wait behind strangers"},
		{Name: "voters-wait-in-the-crowd", Room: "transport", Hazard: "none", Breaks: "when all instances connect at once, the voters lose each other and nobody leads"},
		{Name: "burst-kept-for-ever", Room: "transport", Hazard: "none", Breaks: "each of ten thousand links keeps the buffers of its largest frame, and the leader's memory is never given back"},
		{Name: "raft-of-any-number", Room: "transport", Hazard: "none", Breaks: "a frame of 64 MiB grows to gigabytes when its raft messages are decoded"},
		{Name: "ghosts-unbounded", Room: "cluster/gossip", Hazard: "none", Breaks: "a process with the secret makes up members without end, and each turn looks at all of them"},
		{Name: "gossip-of-any-shape", Room: "cluster/gossip", Hazard: "none", Breaks: "an exchange of a few bytes makes memberlist reserve a hundred megabytes"},
		{Name: "versions-cut-short", Room: "cluster/gossip", Hazard: "none", Breaks: "an exchange of a few bytes makes memberlist panic, and the process with it"},
		{Name: "news-one-by-one", Room: "cluster/gossip", Hazard: "none", Breaks: "each word of gossip is a turn of the owner"},
	}
}
