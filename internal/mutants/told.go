package mutants

// told returns the bugs of texts that name a wrong time, cause, culprit or step.
func told() []Bug {
	return []Bug{
		{Name: "silence-invented", Package: "raftlog", Hazard: "none",
			Breaks: "a new leader reports how long a voter has been silent, although it has never heard the voter"},
		{Name: "loss-time-invented", Package: "cluster/founding", Hazard: "none",
			Breaks: "an instance that was started without a leader reports its start as the time of the loss"},
		{Name: "own-ttl-not-told", Package: "cluster/founding", Hazard: "none",
			Breaks: "a lower SessionTTL is said to have no effect, although the sessions of the instance get it"},
		{Name: "stop-a-holder-that-is-gone", Package: "cmd/mortise", Hazard: "none",
			Breaks: "doctor asks to stop a holder whose process does not run"},
		{Name: "starved-disk-blamed", Package: "raftlog", Hazard: "none",
			Breaks: "a leader that gets no processor says that its store hangs"},
		{Name: "busy-counts-as-starved", Package: "raftlog", Hazard: "none",
			Breaks: "a long turn of the owner is reported as a machine that gives no processor"},
		{Name: "each-loss-told", Package: "internal/instance", Hazard: "none",
			Breaks: "a session with a short TTL logs hundreds of lines an hour"},
		{Name: "stopped-process-not-told", Package: "session/client", Hazard: "none",
			Breaks: "a lease that ends because the process did not run is blamed on the leader"},
		{Name: "withdraws-for-long", Package: "barrier", Hazard: "none",
			Breaks: "Enter and Await return seconds after the end of their context while no leader answers"},
	}
}
