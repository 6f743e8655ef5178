package planted

// bounds are the bugs of what other instances can make one hold.
func bounds() []Bug {
	return []Bug{
		{Name: "calls-of-any-size", Room: "transport", Hazard: "none", Breaks: "sixty unfinished questions on one connection take gigabytes"},
		{Name: "calls-arrive-forever", Room: "transport", Hazard: "none", Breaks: "a question that never ends is held for as long as its connection lives"},
		{Name: "arrivals-of-one-unbounded", Room: "transport", Hazard: "none", Breaks: "one instance that begins many calls ends the connections of others, whose calls take their time"},
		{Name: "connections-of-one-unbounded", Room: "transport", Hazard: "none", Breaks: "one instance takes all connections that there are for all"},
		{Name: "no-quota", Room: "transport", Hazard: "none", Breaks: "one instance takes the places and the memory that are there for all"},
		{Name: "snapshot-judged-late", Room: "transport", Hazard: "none", Breaks: "a snapshot of another group is gathered whole before it is refused"},
		{Name: "snapshot-trickles", Room: "transport", Hazard: "none", Breaks: "a byte now and then keeps a place for a snapshot for ever"},
		{Name: "frames-unbounded", Room: "transport", Hazard: "none", Breaks: "links that begin large frames and do not end them take 64 MiB each"},
		{Name: "raft-of-any-number", Room: "transport", Hazard: "none", Breaks: "a frame of 64 MiB grows to gigabytes when its raft messages are decoded"},
		{Name: "ghosts-unbounded", Room: "cluster", Hazard: "none", Breaks: "a process with the secret makes up members without end, and each turn looks at all of them"},
		{Name: "gossip-of-any-shape", Room: "cluster", Hazard: "none", Breaks: "an exchange of a few bytes makes memberlist reserve a hundred megabytes"},
		{Name: "news-one-by-one", Room: "cluster", Hazard: "none", Breaks: "each word of gossip is a turn of the owner"},
	}
}
