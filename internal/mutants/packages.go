package mutants

// packages returns the bugs of the packages that use only the API of the root.
func packages() []Bug {
	return []Bug{
		{Name: "earlier-owner-frees-shard", Package: "shard", Hazard: "none",
			Breaks: "the late end of an earlier owner makes a shard look free that another instance owns"},
		{Name: "ending-shards-counted", Package: "shard", Hazard: "none",
			Breaks: "an instance that gives shards away begins none until their functions have returned, or gives too few away"},
		{Name: "shards-not-awaited", Package: "shard", Hazard: "none",
			Breaks: "Run returns while functions of its shards still run"},
		{Name: "weights-ignored", Package: "shard", Hazard: "none",
			Breaks: "an instance with a higher weight owns no more shards than another"},
		{Name: "latch-counts-twice", Package: "barrier", Hazard: "none",
			Breaks: "a participant that repeats CountDown after an error counts twice"},
		{Name: "both-of-a-name-counted", Package: "barrier", Hazard: "none",
			Breaks: "a process that was started again counts twice"},
		{Name: "late-one-enters", Package: "barrier", Hazard: "none",
			Breaks: "a participant enters a round that is already open, so more than n are inside"},
		{Name: "leave-does-not-wait", Package: "barrier", Hazard: "none",
			Breaks: "Leave returns while another participant is still inside"},
		{Name: "earlier-presence-ends-later", Package: "presence", Hazard: "none",
			Breaks: "the late end of an earlier presence hides a member that has joined again"},
		{Name: "members-stay-after-gap", Package: "presence", Hazard: "none",
			Breaks: "members that have left during a gap of the watch are listed forever"},
		{Name: "addition-counts-twice", Package: "counter", Hazard: "none",
			Breaks: "an addition that is repeated after a lost answer counts twice"},
		{Name: "forgotten-addition-repeated", Package: "counter", Hazard: "none",
			Breaks: "an addition that is repeated after 64 others counts twice"},
		{Name: "slash-in-a-part", Package: "keys", Hazard: "none",
			Breaks: "two different resources get the same key"},
		{Name: "ended-hold-kept", Package: "internal/hold", Hazard: "none",
			Breaks: "the lock of a function that has returned is never released"},
		{Name: "late-loss-not-seen", Package: "internal/hold", Hazard: "none",
			Breaks: "the result of a function counts, although its lock was lost before it returned"},
		{Name: "pauses-only-grow", Package: "internal/hold", Hazard: "none",
			Breaks: "one failure after a week of work costs a pause of a minute"},
	}
}
