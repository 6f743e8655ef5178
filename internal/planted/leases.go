package planted

// leases are the bugs of sessions.
func leases() []Bug {
	return []Bug{
		{Name: "stale-ack", Room: "session", Hazard: "1", Some: true, Nodes: "TestCutOffHolderLosesBeforeOthersAreGranted",
			Breaks: "a deposed leader acknowledges renewals"},
		{Name: "deadline-from-receipt", Room: "session", Hazard: "2", Some: true, Breaks: "the lease is counted from the acknowledgement, not from the sending of the renewal"},
		{Name: "newest-is-acknowledged", Room: "session", Hazard: "2", Some: true, Breaks: "an acknowledgement counts for a renewal that was sent after the one it names"},
		{Name: "open-from-last-sending", Room: "session", Hazard: "2", Some: true, Breaks: "the lease of a new session is counted from an Open that was not the one applied"},
		{Name: "no-margin", Room: "session", Hazard: "9", Some: true, Breaks: "clocks that drift apart end the lease here after it has ended there"},
		{Name: "timer-decides", Room: "session", Hazard: "7, 11", Breaks: "a lock whose lease is over says that it is held until a timer has fired"},
		{Name: "late-ack-revives", Room: "session", Hazard: "B6", Some: true, Breaks: "an acknowledgement that comes after the deadline brings a lost lock back"},
		{Name: "no-extend", Room: "session", Hazard: "3", Some: true, Breaks: "a new leader does not give the full TTL"},
		{Name: "ack-while-expiring", Room: "session", Hazard: "6, A8", Some: true, Breaks: "a session is renewed whose expiry is on its way"},
		{Name: "waiting-renewals-ignored", Room: "session", Hazard: "12, A8", Some: true, Breaks: "a session is expired whose renewal has arrived"},
		{Name: "stall-counts", Room: "session", Hazard: "12", Some: true, Breaks: "a leader that was stalled expires everybody when it wakes"},
		{Name: "expiry-outlives-its-term", Room: "session", Hazard: "5, A8", Breaks: "an expiry decided in one term is proposed in a later one"},
		{Name: "older-attachment-renewed", Room: "session", Hazard: "S9", Breaks: "renewals of an older attachment are acknowledged"},
		{Name: "down-ends-the-lease", Room: "session", Hazard: "14", Some: true, Breaks: "the end of a stream ends the session"},
		{Name: "deaf-session-kept", Room: "session", Hazard: "50", Nodes: "TestDeafWaiterIsPassedOver", Breaks: "who is heard and hears nothing is granted locks that nobody uses"},
		{Name: "crossing-grant-kept", Room: "session", Hazard: "17", Breaks: "a grant that crosses its cancel is kept, and held by nobody"},
		{Name: "lost-lock-kept", Room: "session", Hazard: "B6, 16", Some: true, Breaks: "a lock that is lost at the deadline is not given back while the session lives on"},
		{Name: "short-grant-used", Room: "session", Hazard: "B6", Breaks: "a lock is granted that is lost in the next moment"},
		{Name: "attach-states-unsent", Room: "session", Hazard: "20, 23", Some: true, Breaks: "who attaches anew does not learn what has become of its requests"},
		{Name: "push-lost", Room: "session", Hazard: "22, 24", Some: true, Breaks: "who is granted a lock by another's release is not told"},
		{Name: "refused-reply-forgotten", Room: "session", Hazard: "B11", Some: true, Breaks: "a grant that did not fit a full queue is dropped, and its attachment goes on"},
		{Name: "silent-leader-kept", Room: "session", Hazard: "L2, 49", Nodes: "TestPlainMemberFindsTheNextLeader", Breaks: "a client stays with a leader that has fallen silent"},
		{Name: "adopt-from-anybody", Room: "session", Hazard: "54, 59", Some: true, Breaks: "any member can change the TTL and the settings of the group"},
		{Name: "redirect-from-anybody", Room: "session", Hazard: "59", Breaks: "any member can say that it leads, and acknowledge leases"},
		{Name: "leave-grants-waiters", Room: "session", Hazard: "B5", Nodes: "TestLeaveEndsWaitingCalls", Breaks: "a call that waits while its node leaves is granted a lock that is left behind"},
		{Name: "close-keeps-locks", Room: "session", Hazard: "70", Nodes: "TestCloseEndsWaitsAndLocks", Breaks: "locks go on saying that they are held after Close"},
	}
}
