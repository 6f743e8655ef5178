package planted

// rules are the bugs of the state machine.
func rules() []Bug {
	return []Bug{
		{Name: "revisions-restart", Room: "lockfsm", Hazard: "28, A4", Some: true, Nodes: "TestTokensRiseWhenAllStartAnew",
			Breaks: "a group founded later deals the tokens of an earlier one again"},
		{Name: "token-from-the-clock", Room: "lockfsm", Hazard: "10, 28", Breaks: "tokens come from a wall clock and do not rise with every grant"},
		{Name: "fifo-broken", Room: "lockfsm", Hazard: "25", Some: true, Nodes: "TestFirstComeFirstServed",
			Breaks: "who comes last passes the waiter before"},
		{Name: "predecessor-gone-is-granted", Room: "lockfsm", Hazard: "21", Some: true, Nodes: "TestCancelStorm",
			Breaks: "a waiter whose predecessor gave up is granted, though the lock is held"},
		{Name: "watch-not-moved", Room: "lockfsm", Hazard: "22, B12", Some: true,
			Breaks: "when the middle of a queue goes, who waited behind it goes on watching it"},
		{Name: "grant-not-fired", Room: "lockfsm", Hazard: "22, 26", Some: true, Nodes: "TestManyCallersExclude",
			Breaks: "the next in the queue holds the lock and nobody tells"},
		{Name: "release-frees-another", Room: "lockfsm", Hazard: "18", Some: true, Breaks: "a release that comes twice frees what the session locked since"},
		{Name: "no-dedup", Room: "lockfsm", Hazard: "15", Some: true, Breaks: "a request that arrives twice is carried out twice"},
		{Name: "dedup-not-in-snapshot", Room: "lockfsm", Hazard: "15, 37", Breaks: "a replica made of a snapshot has forgotten which requests are finished"},
		{Name: "cancel-ignored", Room: "lockfsm", Hazard: "16", Some: true, Nodes: "TestCancelStorm", Breaks: "who gave up stays in the queue and is granted the lock"},
		{Name: "early-cancel-forgotten", Room: "lockfsm", Hazard: "16", Breaks: "a request that arrives after its cancel is carried out"},
		{Name: "expire-ignores-term", Room: "lockfsm", Hazard: "5, A8", Some: true, Breaks: "an expiry decided in an earlier term ends a session that was renewed since"},
		{Name: "small-passes-large", Room: "lockfsm", Hazard: "25", Some: true, Breaks: "readers pass a writer who waits, and small requests large ones, for ever"},
		{Name: "permits-not-counted", Room: "lockfsm", Hazard: "A1", Some: true, Breaks: "more permits of a semaphore are given than there are"},
		{Name: "one-of-several-is-enough", Room: "lockfsm", Hazard: "A1", Some: true, Breaks: "a request for several locks is granted when the first of them is free"},
		{Name: "notice-not-given", Room: "lockfsm", Hazard: "A1", Breaks: "a holder who wants to know is not told that somebody waits"},
		{Name: "deadlock-not-seen", Room: "lockfsm", Hazard: "A1", Breaks: "who waits for each other in a circle waits for ever"},
		{Name: "attach-keeps-unnamed", Room: "lockfsm", Hazard: "16, A9", Some: true, Breaks: "requests whose cancel was lost stay in the queue when their session attaches anew"},
		{Name: "epoch-ignored", Room: "lockfsm", Hazard: "L3, A9", Some: true, Breaks: "commands of an older attachment are carried out behind a newer one"},
		{Name: "stranger-attaches", Room: "lockfsm", Hazard: "59", Some: true, Breaks: "any member can attach another's session, and so take its locks"},
		{Name: "open-twice", Room: "lockfsm", Hazard: "A9", Some: true, Breaks: "an Open that is repeated makes a second session"},
		{Name: "grace-skipped", Room: "lockfsm", Hazard: "31, A4", Nodes: "TestGraceOfANewGroup", Breaks: "a new group grants while holders of the one before it still believe"},
		{Name: "full-queue-keeps-all", Room: "lockfsm", Hazard: "76", Breaks: "a full queue refuses also the releases that would empty it"},
		{Name: "map-order-in-apply", Room: "lockfsm", Hazard: "52, 29", Some: true, Breaks: "the order of a map deals the tokens, another one on every replica"},
		{Name: "map-order-in-snapshot", Room: "lockfsm", Hazard: "52", Some: true, Breaks: "equal states have different snapshots"},
		{Name: "capture-sees-later-change", Room: "lockfsm", Hazard: "37, 52", Some: true, Breaks: "a snapshot taken in steps has what came while it was taken, and its replica applies that twice"},
		{Name: "name-left-behind", Room: "lockfsm", Hazard: "76", Breaks: "a lock whose last entry is gone stays for ever"},
	}
}
