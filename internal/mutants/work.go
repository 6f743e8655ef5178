package mutants

// work returns the bugs by which one command makes the replicas do much work.
func work() []Bug {
	return []Bug{
		{Name: "token-found-by-walking", Package: "lockfsm", Hazard: "none",
			Breaks: "a resumption of a token that no hold has visits all holders of the lock"},
		{Name: "least-total-found-by-walking", Package: "lockfsm", Hazard: "none",
			Breaks: "each release of a permit visits all holders of permits"},
		{Name: "least-total-lost-in-heap", Package: "lockfsm", Hazard: "none",
			Breaks: "a semaphore of many holders grants by a total that none of them names"},
		{Name: "index-keeps-resumed-token", Package: "lockfsm", Hazard: "none",
			Breaks: "a hold can be ended with the token that it had before it was resumed"},
		{Name: "notices-found-by-walking", Package: "lockfsm", Hazard: "none",
			Breaks: "a request behind many readers visits all of them to find the one to notify"},
		{Name: "stuck-from-the-first-key", Package: "lockfsm", Hazard: "none",
			Breaks: "each end of a request before one for 256 keys visits all 256"},
		{Name: "try-asks-any-number-of-stays", Package: "lockfsm", Hazard: "none",
			Breaks: "each Try makes a message to each of ten thousand sessions that keep the lock"},
	}
}
